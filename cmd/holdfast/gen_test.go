package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestInterruptedGenLeavesNoHalfFile interrupts when the file has a beginning under
// another name.
func TestInterruptedGenLeavesNoHalfFile(t *testing.T) {
	skipWithoutSignals(t)
	for _, old := range []string{"", "as it was"} {
		folder := t.TempDir()
		file := filepath.Join(folder, "x")
		if old != "" {
			if err := os.WriteFile(file, []byte(old), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		c := startChild(t, "gen", file, "1GiB", "--policy", "sync=each", "--force")
		for !writesIn(t, c, folder) {
			runtime.Gosched()
		}
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := c.exit(t); code != exitInterrupted || !strings.Contains(c.told.String(), "holdfast: interrupted after ") {
			t.Fatalf("exit code %d:\n%s", code, c.told.String())
		}
		got, _ := os.ReadFile(file)
		if left := temporaries(t, folder); string(got) != old || len(left) > 0 {
			t.Errorf("%d bytes, want %q; besides %v", len(got), old, left)
		}
	}
}

// writesIn reports whether a command has a file open in a folder, with or without a name.
func writesIn(t *testing.T, c *child, folder string) bool {
	fds := filepath.Join("/proc", strconv.Itoa(c.Process.Pid), "fd")
	names, err := os.ReadDir(fds)
	if err != nil {
		return len(temporaries(t, folder)) > 0
	}
	for _, name := range names {
		if at, _ := os.Readlink(filepath.Join(fds, name.Name())); strings.HasPrefix(at, folder) {
			return true
		}
	}
	return false
}

func temporaries(t *testing.T, folder string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, ".holdfast-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A shortWriter takes so many bytes, and then calls stop and fails.
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

func TestGenTellsAtWhichByteItFailed(t *testing.T) {
	check := func(err error, code int, sentence, hint string) {
		t.Helper()
		w := &shortWriter{300_000, func() error { return err }}
		cmd := newRoot()
		cmd.SetArgs([]string{"gen", "-", "1MB"})
		cmd.SetOut(w)
		var told bytes.Buffer
		if got := tell(&told, cmd.ExecuteContext(t.Context())); got != code || told.String() != "holdfast: "+sentence+"\nhint: "+hint+"\n" {
			t.Errorf("exit code %d, %q", got, told.String())
		}
	}
	check(syscall.EIO, exitNotMet, "gen -: write at byte 300000: "+syscall.EIO.Error(), "the disk failed: the kernel's log (dmesg) says why")
	check(syscall.ENOSPC, exitNotMet, "gen -: write at byte 300000: "+syscall.ENOSPC.Error(), "free some space, or use another disk")
	check(syscall.EROFS, exitNotMet, "gen -: write at byte 300000: "+syscall.EROFS.Error(), "the file system is mounted read-only")
}

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
	}), &meter{})
	if done != 2*genChunk || !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes, %v", done, err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestGenTakesNothingAwayThatWasMadeMeanwhile has a file appear while another one is
// made for its name.
func TestGenTakesNothingAwayThatWasMadeMeanwhile(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "x")
	for _, create := range []func(string) (*genFile, error){createFor, createNamed} {
		os.Remove(file) // that of the one before
		f, err := create(file)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.WriteFile(file, []byte("other"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := f.publish(false, true); !errors.Is(err, os.ErrExist) {
			t.Error(err)
		}
		f.discard()
		if got, err := os.ReadFile(file); string(got) != "other" {
			t.Errorf("%q, %v", got, err)
		}
		if left := temporaries(t, folder); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// TestTheFirstBytesHaveTakenTime: a rate of GiBs in the first instant would be told else.
func TestTheFirstBytesHaveTakenTime(t *testing.T) {
	if bar := newBytesBar(io.Discard, 1<<20); !bar.IsStarted() {
		t.Error("the bar's time has not begun")
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
	check("sync=1s", true)
	check("buffer=1MiB,sync=never", false)
	if atomicPolicy() != (holdfast.Policy{Sync: holdfast.SyncClose}) {
		t.Error(atomicPolicy())
	}
}

// BenchmarkGen is the whole command, without syncs.
func BenchmarkGen(b *testing.B) {
	file := filepath.Join(b.TempDir(), "x")
	b.SetBytes(256 << 20)
	for b.Loop() {
		err := run(b.Context(), []string{"gen", file, "256MiB", "--policy", "sync=never", "--quiet"}, nil, io.Discard, io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			b.Fatal(err)
		}
	}
}
