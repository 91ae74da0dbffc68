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
		s := splitter{most: most, each: func(text []byte, tooLong bool) {
			if tooLong {
				text = []byte("too long")
			}
			got = append(got, string(text))
		}}
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			s.take(rest[:n])
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
		switch {
		case len(line) > most:
			lines[i] = "too long"
		case !strings.HasSuffix(line, "\n"):
			lines[i] += "\n"
		}
	}
	return lines
}

// TestSplitterHoldsNoMoreThanALine feeds it one that never ends.
func TestSplitterHoldsNoMoreThanALine(t *testing.T) {
	s := splitter{most: 100, each: func(text []byte, tooLong bool) {
		if len(text) > 0 || !tooLong {
			t.Errorf("a line of %d bytes, too long: %v", len(text), tooLong)
		}
	}}
	for range 50 {
		s.take(bytes.Repeat([]byte("a"), 60))
		if cap(s.rest) > 200 {
			t.Fatalf("%d bytes are held", cap(s.rest))
		}
	}
	s.take([]byte("\n"))
}

// TestSplitterKeepsALineOfManyBlocks feeds it in blocks.
func TestSplitterKeepsALineOfManyBlocks(t *testing.T) {
	line := make([]byte, 4*blockSize+5)
	for i := range line {
		line[i] = 'a' + byte(i/blockSize)
	}
	lines := 0
	s := splitter{most: len(line) + 1, each: func(text []byte, tooLong bool) {
		lines++
		if string(text) != string(line)+"\n" || tooLong {
			t.Errorf("%d bytes, too long %v, want the line of %d", len(text), tooLong, len(line)+1)
		}
	}}
	for block := range slices.Chunk(append(line[:len(line):len(line)], '\n'), blockSize) {
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
			got = append(got, b.bytes...)
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
