package write

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestSplitterFindsTheLinesWhereverBlocksEnd compares with strings.SplitAfter.
func TestSplitterFindsTheLinesWhereverBlocksEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := make([]byte, random.IntN(60))
		for i := range text {
			text[i] = "ab\x00\r\n\n"[random.IntN(6)]
		}
		most := 3 + random.IntN(6)
		var got []string
		s := splitter{most: most, tooLong: func() { got = append(got, "too long") }, lines: func(text []byte) {
			if !bytes.HasSuffix(text, []byte("\n")) {
				t.Fatalf("%q is no whole line", text)
			}
			for line := range bytes.Lines(text) {
				got = append(got, string(line))
			}
		}}
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(min(len(rest), most)) // a longer block may have a longer line
			free := random.IntN(4)
			s.takeBehind(append(make([]byte, free, free+n), rest[:n]...), free)
			rest = rest[n:]
		}
		s.end()
		if want := linesOf(string(text), most); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("%q, at most %d: %q, want %q", text, most, got, want)
		}
		if s.held() != 0 {
			t.Fatalf("%d bytes of %q are left", s.held(), text)
		}
	}
}

func linesOf(text string, most int) []string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	for i, line := range lines {
		if lines[i] = strings.TrimSuffix(line, "\n") + "\n"; len(lines[i]) > most {
			lines[i] = "too long"
		}
	}
	return lines
}

// TestSplitterHoldsNoMoreThanALine feeds it one that never ends.
func TestSplitterHoldsNoMoreThanALine(t *testing.T) {
	tooLong := 0
	s := splitter{most: 100, tooLong: func() { tooLong++ }, lines: func(text []byte) { t.Errorf("a line of %d bytes", len(text)) }}
	for range 50 {
		s.take(bytes.Repeat([]byte("a"), 60))
		if cap(s.rest) > 200 {
			t.Fatalf("%d bytes are held", cap(s.rest))
		}
	}
	if s.take([]byte("\n")); tooLong != 1 || s.held() != 0 {
		t.Errorf("%d lines are too long, and %d bytes are held", tooLong, s.held())
	}
}

// TestSplitterKeepsALineOfManyBlocks feeds it in blocks.
func TestSplitterKeepsALineOfManyBlocks(t *testing.T) {
	line := make([]byte, 4*chunkSize+5)
	for i := range line {
		line[i] = 'a' + byte(i/chunkSize)
	}
	lines := 0
	s := splitter{most: len(line) + 1, tooLong: func() { t.Error("a line is too long") }, lines: func(text []byte) {
		lines++
		if string(text) != string(line)+"\n" {
			t.Errorf("%d bytes, want the line of %d", len(text), len(line)+1)
		}
	}}
	for block := range slices.Chunk(append(line[:len(line):len(line)], '\n'), chunkSize) {
		s.take(block)
	}
	if lines != 1 {
		t.Errorf("%d lines", lines)
	}
}

func TestIntakeGivesAllBytesAndThenTheError(t *testing.T) {
	broken := errors.New("the cable is out")
	check := func(r io.Reader, want string, wantErr error) {
		t.Helper()
		in := newIntake(r)
		defer close(in.gone)
		var got []byte
		for b := range in.blocks {
			got = append(got, b.chunk[b.from:]...)
			in.done(b)
			if b.err != nil {
				if string(got) != want || !errors.Is(b.err, wantErr) {
					t.Errorf("%d bytes, %v; want %d, %v", len(got), b.err, len(want), wantErr)
				}
				return
			}
		}
	}
	long := strings.Repeat("abcdefg\n", 1<<20)
	check(strings.NewReader(""), "", io.EOF)
	check(strings.NewReader(long), long, io.EOF)
	check(iotest.OneByteReader(strings.NewReader("a\nb")), "a\nb", io.EOF)
	check(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), "a\nb", broken)
}
