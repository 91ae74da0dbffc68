package gen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/filetest"
)

func TestGenStopsBetweenChunks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &shortWriter{room: 1 << 30}
	g := &generation{file: "-", size: 1 << 40, kind: genZero}
	first := true
	done, err := g.fill(ctx, writerFunc(func(p []byte) (int, error) {
		if !first {
			cancel()
		}
		first = false
		return w.Write(p)
	}), cli.NewProgress(io.Discard, true))
	if done != 2*genChunk || !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes, %v", done, err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestGenTakesNothingAwayThatWasMadeMeanwhile has a file appear while another one is
// made for its name.
func TestGenTakesNothingAwayThatWasMadeMeanwhile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x")
	for _, create := range []func(string) (*genFile, error){createFor, createNamed} {
		os.Remove(file) // the one of the line before
		f, err := create(file)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.WriteFile(file, []byte("other"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.publish(false, true); !errors.Is(err, os.ErrExist) {
			t.Error(err)
		}
		f.discard()
		if got, err := os.ReadFile(file); string(got) != "other" {
			t.Errorf("%q, %v", got, err)
		}
		if left := filetest.LeftIn(dir); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

func TestGenSyncsAsThePolicySays(t *testing.T) {
	check := func(text string, durable bool) {
		t.Helper()
		policy, err := parseGenPolicy(text)
		if g := (&generation{policy: policy}); err != nil || g.durable() != durable {
			t.Errorf("%s: durable %v, %v", text, g.durable(), err)
		}
	}
	check("atomic", true)
	check("sync=close", true)
	check("periodic=1s", true)
	check("buffer=1MiB,sync=never", false)
	if atomicPolicy() != (holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncClose}}) {
		t.Error(atomicPolicy())
	}
}

// TestGenWritesTheBytesOfItsSeed has it write in several chunks what one read gives.
func TestGenWritesTheBytesOfItsSeed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	want := make([]byte, 2*genChunk+123)
	if err := genRun(t.Context(), []string{"gen", file, fmt.Sprint(len(want), "B"), "--seed", "7", "--quiet"}, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	_, _ = newFiller(genRandom, 7).ReadAt(want, 0) // the offset is not negative
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v, are not the first %d of the seed", len(got), err, len(want))
	}
}

// BenchmarkGen is the whole command, without syncs.
func BenchmarkGen(b *testing.B) {
	file := filepath.Join(b.TempDir(), "x")
	b.SetBytes(256 << 20)
	for b.Loop() {
		err := genRun(b.Context(), []string{"gen", file, "256MiB", "--policy", "sync=never", "--quiet"}, nil, io.Discard, io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			b.Fatal(err)
		}
	}
}

// genRun is the command alone, with its name as the first argument.
func genRun(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	return cli.Run(ctx, New(), args[1:], stdin, stdout, stderr)
}

func TestGenReportsAtWhichByteItFailed(t *testing.T) {
	check := func(err error, code int, sentence, hint string) {
		t.Helper()
		w := &shortWriter{300_000, func() error { return err }}
		var reported bytes.Buffer
		if got := cli.Report(&reported, genRun(t.Context(), []string{"gen", "-", "1MB"}, nil, w, io.Discard)); got != code || reported.String() != "holdfast: "+sentence+"\nhint: "+hint+"\n" {
			t.Errorf("exit code %d, %q", got, reported.String())
		}
	}
	check(syscall.EIO, cli.ExitNotMet, "gen -: write at byte 300000: "+syscall.EIO.Error(), "the disk failed: the kernel's log (dmesg) says why")
	check(syscall.ENOSPC, cli.ExitNotMet, "gen -: write at byte 300000: "+syscall.ENOSPC.Error(), "free some space, or use another disk")
	check(syscall.EROFS, cli.ExitNotMet, "gen -: write at byte 300000: "+syscall.EROFS.Error(), "the file system is mounted read-only")
}

// A shortWriter takes n bytes, and then calls stop and fails.
type shortWriter struct {
	room int
	stop func() error
}

func (w *shortWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	w.room -= n
	if n < len(p) {
		return n, w.stop()
	}
	return n, nil
}
