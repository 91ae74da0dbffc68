package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// numbered writes lines that begin with their number until nobody reads them.
func numbered(w io.WriteCloser, enough int64, told chan<- struct{}) {
	defer w.Close()
	written := int64(0)
	for i := 1; ; i++ {
		n, err := fmt.Fprintf(w, "%d %s\n", i, strings.Repeat("x", i%200))
		if err != nil {
			return
		}
		if written += int64(n); written >= enough && written-int64(n) < enough {
			close(told)
		}
	}
}

// writer starts holdfast write in a folder, with numbered lines as its input, and
// returns a channel that tells when it has read so many bytes of them.
func writer(t *testing.T, folder string, enough int64, args ...string) (c *child, hasRead <-chan struct{}) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"write"}, args...)...)
	cmd.Dir = folder
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = r
	c = startCommand(t, cmd, nil)
	r.Close()
	const pipeHolds = 64 << 10
	told := make(chan struct{})
	go numbered(w, enough+pipeHolds, told)
	return c, told
}

// checkNumbered wants files to hold the lines from 1 to last, each whole and once,
// those of a file in their order, and none above most.
func checkNumbered(t *testing.T, folder string, last, most int64, cutAllowed bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before := int64(0)
		for text := range strings.Lines(string(data)) {
			number, rest, _ := strings.Cut(text, " ")
			n, err := strconv.ParseInt(number, 10, 64)
			whole := err == nil && rest == strings.Repeat("x", int(n%200))+"\n"
			if !whole && cutAllowed && !strings.HasSuffix(text, "\n") {
				continue
			}
			if !whole || n <= before || n > most || seen[n] {
				t.Fatalf("%s: line %q after %d", name, text, before)
			}
			before, seen[n] = n, true
		}
	}
	for n := int64(1); n <= last; n++ {
		if !seen[n] {
			t.Fatalf("line %d of %d is not there", n, last)
		}
	}
}

// TestSignalLeavesEveryLineThatWasRead interrupts write while it reads as fast as it
// can: what the totals say was read is there, and nothing else.
func TestSignalLeavesEveryLineThatWasRead(t *testing.T) {
	skipWithoutSignals(t)
	check := func(signal os.Signal, enough int64, args ...string) {
		t.Helper()
		folder := t.TempDir()
		c, hasRead := writer(t, folder, enough, append(args, "--json")...)
		<-hasRead
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := c.exit(t); code != exitInterrupted || !strings.Contains(c.told.String(), "holdfast: interrupted after line ") {
			t.Fatalf("exit code %d:\n%s", code, c.told.String())
		}
		var totals struct {
			End     string
			Lines   int64
			Written int64 `json:"written_lines"`
		}
		if err := json.Unmarshal(c.stdout.Bytes(), &totals); err != nil {
			t.Fatal(err)
		}
		if totals.End != "interrupted" || totals.Lines != totals.Written || totals.Lines < 1000 {
			t.Fatalf("%+v", totals)
		}
		checkNumbered(t, folder, totals.Lines, totals.Lines, false)
	}
	check(syscall.SIGTERM, 1<<20, "--out", "{%7}")
	check(os.Interrupt, 1<<20, "--out", "all", "--policy", "buffer=1MiB,sync=never")
	check(syscall.SIGTERM, 1<<20, "--out", "{%3}", "--policy", "sync=group")
	check(syscall.SIGTERM, 150<<10, "--out", "{line}", "--split", "--policy", "sync=never")
}

// TestKilledWriteHasWhatItAcknowledged kills write with no chance to do anything: all
// lines up to the last one that was acknowledged are there.
func TestKilledWriteHasWhatItAcknowledged(t *testing.T) {
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "write", "--out", "{%5}", "--policy", "buffer=64KiB,sync=group", "--ack")
	cmd.Dir, cmd.Env = folder, append(cmd.Environ(), asCommand+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go numbered(stdin, 1<<62, nil)
	last := int64(0)
	scanner := bufio.NewScanner(stdout)
	for acks := 0; scanner.Scan(); acks++ {
		if last, err = strconv.ParseInt(scanner.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
		if acks == 20 {
			cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil || last < 20 {
		t.Fatalf("%v after %d lines were acknowledged", err, last)
	}
	checkNumbered(t, folder, last, 1<<62, true)
}

// TestEachLineOfASlowSenderIsHandedOnAtOnce sends a line only when the one before it
// was acknowledged.
func TestEachLineOfASlowSenderIsHandedOnAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	input, send := io.Pipe()
	acks, output := io.Pipe()
	done := make(chan error)
	go func() {
		done <- run(t.Context(), []string{"write", "--out", file, "--policy", "sync=group", "--ack", "--quiet"}, input, output, io.Discard)
	}()
	read := bufio.NewScanner(acks)
	for i := 1; i <= 3; i++ {
		fmt.Fprintf(send, "line %d\n", i)
		if !read.Scan() || read.Text() != strconv.Itoa(i) {
			t.Fatalf("%q is acknowledged, want line %d", read.Text(), i)
		}
	}
	send.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// spreadTo returns a spread whose lines all go to one file.
func spreadTo(t *testing.T, file string, policy holdfast.Policy, stderr io.Writer) *spread {
	t.Helper()
	d := &distribution{policy: policy}
	if err := d.setOut(file); err != nil {
		t.Fatal(err)
	}
	files, err := holdfast.NewFiles(d.options())
	if err != nil {
		t.Fatal(err)
	}
	return d.spread(files, newPulse(stderr, true, files))
}

// TestFailureThatHasPassedCostsNoLine lets a flush in the background fail, makes the
// folder that it missed, and goes on.
func TestFailureThatHasPassedCostsNoLine(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "later")
	file := filepath.Join(folder, "x")
	s := spreadTo(t, file, holdfast.Policy{Buffer: 4096, FlushEvery: time.Millisecond}, io.Discard)
	s.splitter.each = s.take
	s.splitter.take([]byte("one\n"))
	s.flush()
	for s.files.Stats().Flushes == 0 {
		runtime.Gosched()
	}
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	s.splitter.take([]byte("two\n"))
	s.flush()
	s.close()
	s.show.stop()
	got, err := os.ReadFile(file)
	if string(got) != "one\ntwo\n" || err != nil || s.totals.failed() || s.totals.Written != 2 {
		t.Errorf("the file holds %q, %v; totals %+v", got, err, s.totals)
	}
}

// A source gives lines, and ends ctx when it is asked for more: by then they were
// handed on.
type source struct {
	io.Reader
	cancel context.CancelFunc
	asked  bool
}

func (s *source) Read(p []byte) (int, error) {
	if s.asked {
		s.cancel()
		select {} // as a pipe does whose other end is open
	}
	s.asked = true
	return s.Reader.Read(p)
}

func TestInterruptWhileWaitingForLinesWritesThoseBefore(t *testing.T) {
	folder := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	input := &source{Reader: strings.NewReader("a 1\nb 2\nhalf of a l"), cancel: cancel}
	err := run(ctx, []string{"write", "--out", filepath.Join(folder, "{1}"), "--policy", "buffer=64KiB,sync=never"}, input, &stdout, &stderr)
	var r *refusal
	if !errors.As(err, &r) || r.code != exitInterrupted || r.Error() != "interrupted after line 2" {
		t.Errorf("%v", err)
	}
	if !strings.Contains(stdout.String(), "not written: the last 11 bytes that were read: the line has no end\n") {
		t.Errorf("%s", stdout.String())
	}
	for name, want := range map[string]string{"a": "a 1\n", "b": "b 2\n"} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
}

func TestInputThatBreaksOffIsToldWithItsLine(t *testing.T) {
	folder := t.TempDir()
	check := func(before string, code int, sentence string) {
		t.Helper()
		var stdout bytes.Buffer
		broken := io.MultiReader(strings.NewReader(before), iotest.ErrReader(errors.New("the cable is out")))
		err := run(t.Context(), []string{"write", "--out", filepath.Join(folder, "x")}, broken, &stdout, io.Discard)
		var r *refusal
		if !errors.As(err, &r) || r.code != code || !strings.Contains(r.Error(), sentence) || !strings.Contains(r.Error(), "the cable is out") || r.hint == "" {
			t.Errorf("%v", err)
		}
	}
	check("", exitCannot, "reading standard input after line 0: ")
	check("1\n2\n3", exitNotMet, "reading standard input after line 2: ")
	if got, err := os.ReadFile(filepath.Join(folder, "x")); string(got) != "1\n2\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

// TestLineThatIsTooLongCostsOnlyItself lets write have lines of up to 100 bytes.
func TestLineThatIsTooLongCostsOnlyItself(t *testing.T) {
	folder := t.TempDir()
	var stderr bytes.Buffer
	s := spreadTo(t, filepath.Join(folder, "x"), holdfast.Buffered(64*holdfast.KiB), &stderr)
	s.splitter.most = 100
	s.run(t.Context(), newIntake(strings.NewReader("short\n"+strings.Repeat("a", 100)+"\n"+strings.Repeat("b", 99)+"\n")))
	s.close()
	s.show.stop()
	if s.totals.Failures[tooLong] != 1 || s.totals.Written != 2 || stderr.String() != "holdfast: line 2: it is longer than 100B\n" {
		t.Errorf("%+v, told: %s", s.totals, stderr.String())
	}
}

// TestProgressIsTold beats by hand.
func TestProgressIsTold(t *testing.T) {
	files, err := holdfast.NewFiles(holdfast.FilesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	var stderr bytes.Buffer
	p := newPulse(&stderr, true, files)
	defer p.stop()
	p.see(totals{Lines: 12345, Files: 2})
	p.tell()
	if got := stderr.String(); got != "holdfast: 12,345 lines, 0 B/s, 2 files, 0 handles\n" {
		t.Errorf("%q", got)
	}
	stderr.Reset()
	p.isTerminal = true
	p.tell()
	p.failure("oh")
	if got := stderr.String(); !strings.HasPrefix(got, "\rholdfast: 12,345 lines") || !strings.HasSuffix(got, " \rholdfast: oh\n") {
		t.Errorf("%q", got)
	}
}
