package prove

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Program is anybody's, which is killed. It prints a line "ack N" when its record N is where
// the end of the program takes it no more, with N = 1, 2, 3 and so on. Run again, it goes on
// behind the last record that is there.
type Program struct {
	Command string // for the shell, which runs it in an empty directory
	Read    string // prints the numbers of the records that are there, a line each
	Dir     string // where that directory is made; "" is the system's for temporary files
	Time    time.Duration
	Seed    uint64
}

// programTarget is all that a program writes.
var programTarget = []Target{{Path: "the program"}}

// lossOfAck is what may be lost: nothing that was acknowledged, anything else.
var lossOfAck = holdfast.Loss{
	Process: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited},
	Power:   holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited},
}

// acknowledged returns the notes of what a program printed. The last line counts only if it is whole.
func acknowledged(printed []byte) (notes []Note) {
	for len(printed) > 0 {
		line, rest, whole := bytes.Cut(printed, []byte("\n"))
		printed = rest
		text, isAck := strings.CutPrefix(strings.TrimSpace(string(line)), "ack ")
		if n, err := strconv.ParseUint(text, 10, 63); whole && isAck && err == nil {
			notes = append(notes, Note{Kind: Flushed, N: n})
		}
	}
	return notes
}

// readBack says what the reader of a program printed: the records as far as they follow each other.
func readBack(printed string) (*Survivors, error) {
	s := newSurvivors(1)
	for line := range strings.Lines(printed) {
		n, err := strconv.ParseUint(strings.TrimSpace(line), 10, 63)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--read printed %.40q, which is no number of a record", line)
		case s.Disorder[0]:
		case n == s.N[0]+1:
			s.N[0] = n
		default:
			s.Disorder[0] = true
		}
	}
	return s, nil
}
