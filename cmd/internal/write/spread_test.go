package write

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
)

// spreadTo returns a spread whose lines all go to one file.
func spreadTo(t *testing.T, file string, policy holdfast.Policy, stderr io.Writer) *spread {
	t.Helper()
	o := &order{out: target{before: file}, policy: policy, appends: true}
	set, err := files.New(o.options())
	if err != nil {
		t.Fatal(err)
	}
	return o.spread(set, newPulse(cli.NewProgress(stderr, true), set), nil)
}

// TestFailureThatHasPassedCostsNoLine lets a flush in the background fail, makes the
// directory that it missed, and goes on.
func TestFailureThatHasPassedCostsNoLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	file := filepath.Join(dir, "x")
	policy := holdfast.Policy{Buffer: 4096, FlushEvery: time.Millisecond}
	s := spreadTo(t, file, policy, io.Discard)
	set, err := files.New(files.Options{Policy: policy, Lines: true}) // it makes no directory
	if err != nil {
		t.Fatal(err)
	}
	s.set = set
	s.splitter.take([]byte("one\n"))
	s.flush()
	for s.set.Stats().Flushes == 0 {
		runtime.Gosched()
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s.splitter.take([]byte("two\n"))
	s.flush()
	s.close()
	s.show.End()
	got, err := os.ReadFile(file)
	if string(got) != "one\ntwo\n" || err != nil || s.totals.Failures.sum() > 0 || s.totals.FailedFiles > 0 || s.totals.Written != 2 {
		t.Errorf("the file holds %q, %v; totals %+v", got, err, s.totals)
	}
}

// TestLineThatIsTooLongCostsOnlyItself lets write have lines of up to 100 bytes.
func TestLineThatIsTooLongCostsOnlyItself(t *testing.T) {
	dir := t.TempDir()
	var stderr bytes.Buffer
	s := spreadTo(t, filepath.Join(dir, "x"), holdfast.Buffered(64*holdfast.KiB), &stderr)
	s.splitter.most = 100
	s.run(t.Context(), newIntake(iotest.OneByteReader(strings.NewReader("short\n"+strings.Repeat("a", 100)+"\n"+strings.Repeat("b", 99)+"\n"))))
	s.close()
	s.show.End()
	if s.totals.Failures[tooLong] != 1 || s.totals.Written != 2 || stderr.String() != "holdfast: line 2: it is longer than 100B\n" {
		t.Errorf("%+v, stderr: %s", s.totals, stderr.String())
	}
}

// TestProgressIsReported beats by hand.
func TestProgressIsReported(t *testing.T) {
	files, err := files.New(files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	var stderr bytes.Buffer
	p := newPulse(cli.NewProgress(&stderr, true), files)
	defer p.End()
	p.see(totals{Lines: 12345, Files: 2})
	p.Show(p.text())
	if got := stderr.String(); got != "holdfast: 12,345 lines, 0 B/s, 2 files, 0 handles\n" {
		t.Errorf("%q", got)
	}
	stderr.Reset()
	p.IsTerminal = true
	p.Show(p.text())
	p.Failure(nil, "oh")
	if got := stderr.String(); !strings.HasPrefix(got, "\rholdfast: 12,345 lines") || !strings.HasSuffix(got, " \rholdfast: oh\n") {
		t.Errorf("%q", got)
	}
}

// TestValuesOfOneSlotKeepTheirFiles writes lines of two values in turn, whose files have the same place in recent.
func TestValuesOfOneSlotKeepTheirFiles(t *testing.T) {
	if slot([]byte("a-12")) != slot([]byte("b-12")) {
		t.Fatal("they have two slots: choose other values")
	}
	dir := t.TempDir()
	o := &order{out: target{before: dir + "/", varies: true}, column: 1, policy: holdfast.Unbuffered()}
	set, err := files.New(o.options())
	if err != nil {
		t.Fatal(err)
	}
	s := o.spread(set, newPulse(cli.NewProgress(io.Discard, true), set), nil)
	s.splitter.take([]byte("a-12 1\nb-12 2\na-12 3\nb-12 4\n5\n"))
	s.flush()
	s.close()
	s.show.End()
	for name, want := range map[string]string{"a-12": "a-12 1\na-12 3\n", "b-12": "b-12 2\nb-12 4\n", "5": "5\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want || err != nil {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}

// TestLinesOfManyChunksAreInOnePiece counts the calls: what a chunk has goes to the library in one, without a copy, and its first
// line with it.
func TestLinesOfManyChunksAreInOnePiece(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	s := spreadTo(t, file, holdfast.Buffered(64*holdfast.KiB), io.Discard)
	var text bytes.Buffer
	lines := int64(0)
	for ; text.Len() < 5*chunkSize; lines++ {
		fmt.Fprintf(&text, "%d %s\n", lines, strings.Repeat("a", int(lines%100)))
	}
	s.run(t.Context(), newIntake(bytes.NewReader(text.Bytes())))
	s.close()
	s.show.End()
	if got, err := os.ReadFile(file); !bytes.Equal(got, text.Bytes()) || err != nil {
		t.Errorf("the file has %d bytes that are not the %d of the input, %v", len(got), text.Len(), err)
	}
	if n := s.totals.Stats.Writes; n != 6 || s.totals.Written != lines || s.totals.Lines != lines {
		t.Errorf("%d calls for 6 chunks, %d of %d lines", n, s.totals.Written, lines)
	}
}

// TestLentLinesAreNotWrittenTo takes further lines when the chunk of the first ones belongs to the intake again.
func TestLentLinesAreNotWrittenTo(t *testing.T) {
	s := spreadTo(t, filepath.Join(t.TempDir(), "x"), holdfast.Unbuffered(), io.Discard)
	lent := bytes.Repeat([]byte("a\n"), leastLent/2)
	s.splitter.take(lent)
	s.splitter.take([]byte("b\n"))
	s.flush()
	s.close()
	s.show.End()
	if bytes.Contains(lent, []byte("b")) || s.totals.Bytes != leastLent+2 {
		t.Errorf("%q begins the chunk, and %d bytes are written", lent[:4], s.totals.Bytes)
	}
}
