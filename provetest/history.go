package provetest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/prove"
)

// A Log takes notes of what a workload does, outside of what is crashed. Any goroutine may use it.
type Log struct{ out io.Writer }

// Begin notes that a value is about to be stored under a key: from now on it may be there. The value
// "" is none: the key is about to be removed. Values of one key are better different from each other,
// and small.
func (l *Log) Begin(key, value string) { l.note("begin", key, value) }

// Ack notes that the value is acknowledged, which was begun: from now on a crash must not take it, until
// another value of the key is begun.
func (l *Log) Ack(key, value string) { l.note("ack", key, value) }

func (l *Log) note(what, key, value string) {
	if _, err := fmt.Fprintf(l.out, "%s %q %q\n", what, key, value); err != nil {
		panic(err) // nothing can be judged without it
	}
}

// A history is what was noted of each key since it was last read.
type history struct {
	puts  map[string][]put
	clock int // how many notes
}

// A put is a value that was begun at a time and acknowledged at another.
type put struct {
	value        string
	begun, acked int
}

const pending = math.MaxInt

func newHistory() *history { return &history{puts: map[string][]put{}} }

// of returns the puts of a key, of which the first is what was there before.
func (h *history) of(key string) []put {
	if h.puts[key] == nil {
		h.puts[key] = []put{{}}
	}
	return h.puts[key]
}

// extend adds the notes of a run, and returns how many values they acknowledge. The last note may be
// cut off.
func (h *history) extend(notes []byte) (acknowledged int64, err error) {
	for line := range bytes.Lines(notes) {
		what, rest, _ := strings.Cut(string(line), " ")
		first, err := strconv.QuotedPrefix(rest)
		if err != nil || !strings.HasSuffix(rest, "\n") {
			continue
		}
		key, keyErr := strconv.Unquote(first)
		value, err := strconv.Unquote(strings.TrimSpace(rest[len(first):]))
		if keyErr != nil || err != nil {
			continue
		}
		h.clock++
		puts := h.of(key)
		if what == "begin" {
			h.puts[key] = append(puts, put{value, h.clock, pending})
			continue
		}
		i := slices.IndexFunc(puts, func(p put) bool { return p.value == value && p.acked == pending })
		if i < 0 {
			return 0, fmt.Errorf("key %q: value %q was acknowledged, and not begun", key, value)
		}
		puts[i].acked = h.clock
		acknowledged++
	}
	return acknowledged, nil
}

// judge judges what was read. A value may be there if it was begun, and no value was both begun after
// its acknowledgement and acknowledged itself: of values that are stored at the same time any may be the last.
func (h *history) judge(found map[string]string) *prove.Violation {
	for _, key := range slices.Sorted(maps.Keys(h.puts)) {
		is, newest := found[key], put{}
		for _, p := range h.puts[key] {
			if p.acked != pending && p.begun >= newest.begun {
				newest = p
			}
		}
		known := false
		may := slices.ContainsFunc(h.puts[key], func(p put) bool {
			known = known || p.value == is
			return p.value == is && p.acked >= newest.begun
		})
		switch {
		case may:
		case known || is == "":
			return &prove.Violation{Rule: "lost", Words: fmt.Sprintf("key %q: value %q was acknowledged, and %s is there", key, newest.value, text(is))}
		default:
			return invented(key, is)
		}
	}
	for key, is := range found {
		if h.puts[key] == nil && is != "" {
			return invented(key, is)
		}
	}
	return nil
}

func invented(key, is string) *prove.Violation {
	return &prove.Violation{Rule: "invented", Words: fmt.Sprintf("key %q: value %q is there, which was never stored", key, is)}
}

func text(value string) string {
	if value == "" {
		return "none"
	}
	return fmt.Sprintf("the older %q", value)
}

// restart forgets all but what was read, which must stay.
func (h *history) restart(found map[string]string) {
	*h = *newHistory()
	for key, value := range found {
		h.puts[key] = []put{{value: value}}
	}
}
