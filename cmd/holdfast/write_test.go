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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

// numbered writes lines that begin with their number, and one of five words, until nobody reads them.
func numbered(w io.WriteCloser, enough int64, reported chan<- struct{}) {
	defer w.Close()
	written := int64(0)
	for i := 1; ; i++ {
		n, err := fmt.Fprintf(w, "%d %d %s\n", i, i%5, strings.Repeat("x", i%200))
		if err != nil {
			return
		}
		if written += int64(n); written >= enough && written-int64(n) < enough {
			close(reported)
		}
	}
}

// numberOf returns the number of a line of numbered, and whether all of the line is there.
func numberOf(line string) (n int64, whole bool) {
	number, rest, _ := strings.Cut(line, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	return n, err == nil && rest == fmt.Sprintf("%d %s\n", n%5, strings.Repeat("x", int(n%200)))
}

// piped starts holdfast write in a directory, for the test to write to and read from.
func piped(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, stdin io.WriteCloser, stdout, stderr io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self, append([]string{"write"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(cmd.Environ(), asCommand+"=1")
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	stderr, toldErr := cmd.StderrPipe()
	if err := errors.Join(inErr, outErr, toldErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	return cmd, stdin, stdout, stderr
}

// writer starts holdfast write in a directory, with numbered lines as its input. It returns a
// channel that is closed when it has read n bytes of them.
func writer(t *testing.T, dir string, enough int64, args ...string) (c *child, hasRead <-chan struct{}) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"write"}, args...)...)
	cmd.Dir = dir
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = r
	c = startCommand(t, cmd, nil)
	r.Close()
	const pipeHolds = 64 << 10
	reported := make(chan struct{})
	go numbered(w, enough+pipeHolds, reported)
	return c, reported
}

// checkNumbered checks that files hold the lines from 1 to last, each whole and
// once, in order in a file, and none above most.
func checkNumbered(t *testing.T, dir string, last, most int64, cutAllowed bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
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
			n, whole := numberOf(text)
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
		dir := t.TempDir()
		c, hasRead := writer(t, dir, enough, append(args, "--json")...)
		<-hasRead
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := c.exit(t); code != exitBy(signal) || !strings.Contains(c.reported.String(), "holdfast: interrupted after line ") {
			t.Fatalf("exit code %d:\n%s", code, c.reported.String())
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
		checkNumbered(t, dir, totals.Lines, totals.Lines, false)
	}
	check(syscall.SIGTERM, 1<<20, "--out", "{}", "--split", "2")
	check(os.Interrupt, 1<<20, "--out", "all", "--policy", "buffer=1MiB,sync=never")
	check(syscall.SIGTERM, 1<<20, "--out", "{}", "--split", "2", "--policy", "sync=group")
	check(syscall.SIGTERM, 1<<20, "--out", "{}", "--split", "2", "--policy", "sync=never")
}

// TestKilledWriteHasWhatItAcknowledged kills write with no chance to do anything: all
// lines up to the last one that was acknowledged are there.
func TestKilledWriteHasWhatItAcknowledged(t *testing.T) {
	dir := t.TempDir()
	cmd, stdin, stdout, _ := piped(t, dir, "--out", "{}", "--split", "2", "--policy", "buffer=64KiB,sync=group", "--ack")
	go numbered(stdin, 1<<62, nil)
	last := int64(0)
	scanner := bufio.NewScanner(stdout)
	for acks := 0; scanner.Scan(); acks++ {
		var err error
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
	checkNumbered(t, dir, last, 1<<62, true)
}

// TestEachLineOfASlowSenderIsHandedOnAtOnce sends a line only when the one before it
// was acknowledged.
func TestEachLineOfASlowSenderIsHandedOnAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	input, send := io.Pipe()
	acks, output := io.Pipe()
	done := make(chan error)
	go func() {
		done <- runCommand(t.Context(), []string{"write", "--out", file, "--policy", "sync=group", "--ack", "--quiet"}, input, output, io.Discard)
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
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	input := &source{Reader: strings.NewReader("a 1\nb 2\nhalf of a l"), cancel: cancel}
	err := runCommand(ctx, []string{"write", "--out", filepath.Join(dir, "{}"), "--split", "1", "--policy", "buffer=64KiB,sync=never"}, input, &stdout, &stderr)
	var r *cli.Refusal
	if !errors.As(err, &r) || r.Code != cli.ExitInterrupted || r.Error() != "interrupted after line 2" {
		t.Errorf("%v", err)
	}
	if !strings.Contains(stdout.String(), "not written: the last 11 bytes of the input, a line without an end\n") {
		t.Errorf("%s", stdout.String())
	}
	for name, want := range map[string]string{"a": "a 1\n", "b": "b 2\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
}

func TestInputThatBreaksOffIsReportedWithItsLine(t *testing.T) {
	dir := t.TempDir()
	check := func(before string, code int, sentence string) {
		t.Helper()
		var stdout bytes.Buffer
		broken := io.MultiReader(strings.NewReader(before), iotest.ErrReader(errors.New("the cable is out")))
		err := runCommand(t.Context(), []string{"write", "--out", filepath.Join(dir, "x")}, broken, &stdout, io.Discard)
		var r *cli.Refusal
		if !errors.As(err, &r) || r.Code != code || !strings.Contains(r.Error(), sentence) || !strings.Contains(r.Error(), "the cable is out") || r.Hint == "" {
			t.Errorf("%v", err)
		}
	}
	check("", cli.ExitCannot, "reading standard input after line 0: ")
	check("1\n2\n3", cli.ExitNotMet, "reading standard input after line 2: ")
	if got, err := os.ReadFile(filepath.Join(dir, "x")); string(got) != "1\n2\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}
