package wal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	log "github.com/holdfast-go/holdfast/wal"
)

// logOf makes a log of records 1 to 30, in several segments.
func logOf(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	l, _, err := log.Open(dir, log.Options{Policy: holdfast.Buffered(4096), SegmentSize: 8 * holdfast.KiB})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if _, err := l.Append(fmt.Appendf(nil, "record %d %s", i+1, strings.Repeat(".", 400))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.TruncateBefore(3), l.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// damageIn changes a byte of a log's second segment.
func damageIn(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "0000000000000002.wal")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[4096+700] ^= 1
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func run(args ...string) (stdout, stderr string, code int) {
	var out, talk bytes.Buffer
	err := cli.Run(context.Background(), New(), args, nil, &out, &talk)
	code = cli.Report(&talk, err)
	return out.String(), talk.String(), code
}

// wants checks a run's exit code and its output by patterns.
func wants(t *testing.T, code int, stdout, stderr string, args ...string) {
	t.Helper()
	out, talk, got := run(args...)
	if got != code || !regexp.MustCompile(stdout).MatchString(out) || !regexp.MustCompile(stderr).MatchString(talk) {
		t.Errorf("wal %v: code %d\n%.300s\n%s", args, got, out, talk)
	}
}

func TestAWholeLogIsVerifiedPrintedAndCopied(t *testing.T) {
	dir := logOf(t)
	wants(t, 0, `^28 records from 3 to 30 are intact: 11 KiB of data in 4 segments\n$`, `^$`, "verify", dir)
	wants(t, 0, `^record 28 \.+\nrecord 29 \.+\nrecord 30 \.+\n$`, `^$`, "cat", dir, "--from", "28")
	to := filepath.Join(t.TempDir(), "new")
	wants(t, 0, `new has 28 of 28 intact records, from 3 to 30\n$`, `^$`, "repair", dir, to)
	was, _, _ := run("cat", dir)
	is, _, code := run("cat", to)
	if was != is || code != 0 || strings.Count(is, "\n") != 28 {
		t.Errorf("code %d, %d bytes of %d", code, len(is), len(was))
	}
}

func TestDamageIsReportedAndStaysWhereItIs(t *testing.T) {
	dir := logOf(t)
	damageIn(t, dir)
	const at = `0000000000000002\.wal is damaged at byte \d+, where record 1[0-9] should be: .*\n`
	wants(t, 1, `^27 records from 3 to 30 are intact`, at+`.*damaged in 1 place\nhint: holdfast wal repair`, "verify", dir)
	wants(t, 1, `^record 3 (.*\n){27}$`, at, "cat", dir)
	to := t.TempDir()
	wants(t, 1, `part has 8 of 27 intact records, from 3 to 10\n$`, at+`.*19 intact records not copied, because an earlier record is missing\nhint: --renumber`, "repair", dir, filepath.Join(to, "part"))
	wants(t, 0, `all has 27 of 27 intact records, from 3 to 29\n$`, at, "repair", dir, filepath.Join(to, "all"), "--renumber")
	wants(t, 0, `^27 records from 3 to 29`, `^$`, "verify", filepath.Join(to, "all"))
	wants(t, 1, `^27 records`, at, "verify", dir)
}

// TestALogThatIsOpenIsRead while records are appended and segments removed.
func TestALogThatIsOpenIsRead(t *testing.T) {
	dir := logOf(t)
	l, _, err := log.Open(dir, log.Options{Policy: holdfast.Unbuffered(), SegmentSize: 8 * holdfast.KiB})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	wants(t, 0, `^28 records from 3 to 30 are intact: .*\na program has the log open`, `^$`, "verify", dir)
	stop, stopped := make(chan bool), make(chan error)
	go func() {
		for {
			last, err := l.Append(bytes.Repeat([]byte("x"), 900))
			if err == nil && last%40 == 0 && last > 1000 {
				err = l.TruncateBefore(last - 1000)
			}
			select {
			case <-stop:
				stopped <- err
				return
			default:
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 20 {
		wants(t, 0, `^[0-9,]+ records from`, `^$`, "verify", dir)
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestCatFollows prints what is appended while it runs, until it is ended.
func TestCatFollows(t *testing.T) {
	dir := logOf(t)
	l, _, err := log.Open(dir, log.Options{Policy: holdfast.Durable(), SegmentSize: 8 * holdfast.KiB})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w := io.Pipe()
	code := make(chan int)
	go func() {
		var talk bytes.Buffer
		err := cli.Run(ctx, New(), []string{"cat", dir, "--from", "30", "--follow", "--json"}, nil, w, &talk)
		w.Close()
		code <- cli.Report(&talk, err)
	}()
	lines := bufio.NewScanner(r)
	for i := range 6 { // in several segments
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), fmt.Sprintf(`{"index":%d,"`, 30+i)) {
			t.Fatalf("%d: %.80s", i, lines.Text())
		}
		if _, err := l.Append(bytes.Repeat([]byte{0xff, byte(i)}, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	go io.Copy(io.Discard, r)
	cancel()
	if got := <-code; got != cli.ExitInterrupted {
		t.Errorf("exit code %d", got)
	}
}

func TestRecordsAsJSON(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, _, err := log.Open(dir, log.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append([]byte("a \"line\"\n"), nil, []byte{0xff, 0}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	wants(t, 0, `^{"index":1,"text":"a \\"line\\"\\n"}\n{"index":2,"text":""}\n{"index":3,"base64":"/wA="}\n$`, `^$`, "cat", dir, "--json")
	wants(t, 0, `^{"index":3,.*\n$`, `^$`, "cat", dir, "--json", "--from", "3")
}

// TestASegmentOfACopyHasRoom for the largest record of any log.
func TestASegmentOfACopyHasRoom(t *testing.T) {
	const around = 4096 + 36
	for _, largest := range []int{0, 1 << 20, 16<<20 - around, 16<<20 - around + 1, 100<<20 - 3, 256<<20 - around} {
		size := segmentFor(8191, largest)
		_, _, err := log.Open(filepath.Join(t.TempDir(), "no", "log"), log.Options{SegmentSize: size})
		if int(size) < largest+around || !errors.Is(err, fs.ErrNotExist) { // the size itself is right
			t.Errorf("a record of %d: %v, %v", largest, size, err)
		}
	}
}

// TestACopyPermitsWhatTheLogDoes, whatever umask is. Of segments that differ each says what is not permitted.
func TestACopyPermitsWhatTheLogDoes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files here have no such permissions")
	}
	for n, c := range []struct{ dir, first, others, wantDir, want fs.FileMode }{
		{0o700, 0o600, 0o600, 0o700, 0o600},
		{0o775, 0o664, 0o664, 0o775, 0o664},
		{0o770, 0o640, 0o660, 0o770, 0o640},
		{0o755, 0o644, 0o640, 0o755, 0o640},
		{0o500, 0o444, 0o444, 0o700, 0o644}, // the copy's owner is to open it
	} {
		dir := logOf(t)
		names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
		if err != nil || len(names) < 2 {
			t.Fatal(names, err)
		}
		for i, name := range names {
			err = errors.Join(err, os.Chmod(name, []fs.FileMode{c.first, c.others}[min(i, 1)]))
		}
		if err := errors.Join(err, os.Chmod(dir, c.dir)); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "copy")
		wants(t, 0, `copy has 28 of 28`, `^$`, "repair", dir, to)
		if err := os.Chmod(dir, 0o700); err != nil { // else it can't be removed
			t.Fatal(err)
		}
		if info, err := os.Stat(to); err != nil || info.Mode().Perm() != c.wantDir {
			t.Errorf("%d: the directory has %v, %v; want %v", n, info.Mode(), err, c.wantDir)
		}
		all, err := os.ReadDir(to)
		if err != nil || len(all) < 2 {
			t.Fatal(all, err)
		}
		for _, e := range all {
			if info, err := e.Info(); err != nil || info.Mode().Perm() != c.want {
				t.Errorf("%d: %s has %v, %v; want %v", n, e.Name(), info.Mode(), err, c.want)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	dir, empty := logOf(t), t.TempDir()
	wants(t, 2, `^$`, `unknown command "fix" of wal\nhint: the commands are`, "fix")
	wants(t, 2, `^$`, `needs the directory of one log, not 0 arguments`, "verify")
	wants(t, 2, `^$`, `needs the directory of a log and a new directory, not 1 argument\n`, "repair", dir)
	wants(t, 2, `^$`, `there is no directory "nowhere"`, "cat", "nowhere")
	wants(t, 2, `^$`, `there is no log in .*\nhint: name the directory that was given to wal.Open`, "verify", empty)
	wants(t, 2, `^$`, `exists\nhint: name a directory that does not exist yet`, "repair", dir, empty)
	l, _, err := log.Open(dir, log.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	wants(t, 3, `^$`, `open elsewhere.*\nhint: end the program`, "repair", dir, filepath.Join(empty, "new"))
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}
