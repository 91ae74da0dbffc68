package write

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	one, other := "v0", ""
	for i := 1; other == "" || slot([]byte(other)) != slot([]byte(one)); i++ {
		other = fmt.Sprint("v", i)
	}
	dir := t.TempDir()
	o := &order{out: target{before: dir + "/", varies: true}, column: 1, policy: holdfast.Unbuffered()}
	set, err := files.New(o.options())
	if err != nil {
		t.Fatal(err)
	}
	s := o.spread(set, newPulse(cli.NewProgress(io.Discard, true), set), nil)
	s.splitter.take([]byte(one + " 1\n" + other + " 2\n" + one + " 3\n" + other + " 4\n5\n"))
	s.flush()
	s.close()
	s.show.End()
	for name, want := range map[string]string{one: one + " 1\n" + one + " 3\n", other: other + " 2\n" + other + " 4\n", "5": "5\n"} {
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

// TestPilesKeepTheirMemory fills batches of few files with as many bytes each time. A pile that is let go of would grow by
// copies again.
func TestPilesKeepTheirMemory(t *testing.T) {
	o := &order{out: target{before: t.TempDir() + "/", varies: true}, column: 1, policy: holdfast.Buffered(64 * holdfast.KiB)}
	set, err := files.New(o.options())
	if err != nil {
		t.Fatal(err)
	}
	s := o.spread(set, newPulse(cli.NewProgress(io.Discard, true), set), nil)
	lines := bytes.Repeat([]byte("a "+strings.Repeat("x", 100)+"\nb "+strings.Repeat("x", 100)+"\n"), 1000)
	kept := func() (all []*pile, size int) {
		s.splitter.take(lines)
		s.flush()
		for _, p := range s.spare {
			size += p.size
		}
		return slices.Clone(s.spare), size
	}
	before, _ := kept()
	after, size := kept()
	slices.Reverse(after) // each is taken from the end and given back to it
	if !slices.Equal(before, after) || len(after) != 2 || size != s.spared || size < len(lines) {
		t.Errorf("%d piles of %d bytes are kept of %d, and %d are counted", len(after), size, len(before), s.spared)
	}
	s.splitter.take(append(bytes.Repeat([]byte("x"), 2*mostSpared), '\n'))
	s.flush()
	if _, size := kept(); size != s.spared || size > mostSpared {
		t.Errorf("%d bytes are kept and %d counted: at most %d", size, s.spared, mostSpared)
	}
	s.close()
	s.show.End()
}

// TestBatchEndsWhenItsPilesAreLarge counts the calls for 1 MiB: a batch is small, unless its files are many or calls share syncs.
func TestBatchEndsWhenItsPilesAreLarge(t *testing.T) {
	check := func(policy holdfast.Policy, values, want int) {
		t.Helper()
		o := &order{out: target{before: t.TempDir() + "/", varies: true}, column: 1, policy: policy}
		set, err := files.New(o.options())
		if err != nil {
			t.Fatal(err)
		}
		s := o.spread(set, newPulse(cli.NewProgress(io.Discard, true), set), nil)
		var text bytes.Buffer
		for i := 0; text.Len() < mostBatch; i++ {
			fmt.Fprintf(&text, "%03d %059d\n", i%values, i)
		}
		s.splitter.take(text.Bytes())
		s.flush()
		s.close()
		s.show.End()
		if n := s.totals.Stats.Writes; n != int64(want) {
			t.Errorf("%d calls for %d files under %v, not %d", n, values, policy, want)
		}
	}
	few := mostBatch / leastBatch
	check(holdfast.Buffered(64*holdfast.KiB), 2, 2*few)
	check(holdfast.Buffered(64*holdfast.KiB), leastBatch/leastPile, leastBatch/leastPile*few)
	check(holdfast.Buffered(64*holdfast.KiB), mostBatch/leastPile, mostBatch/leastPile)
	check(holdfast.Durable(), 2, 2)
}
