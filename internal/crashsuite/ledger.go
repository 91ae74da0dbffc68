//go:build go1.25

package crashsuite

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A record is a line with its stream (one digit), its number (four) and its size.
type record struct {
	stream, seq int
	text        []byte
	given       int // accepted bytes
	state       state
	acked       time.Time
	kept        [2]bool // member of ledger.kept
}

type state int

const (
	inFlight state = iota
	refused
	accepted // a part of the record, or all of it with an error
	acked
)

// shortest is the size of a record with nothing after its head.
const shortest = len("1 0001 00016 \n") + 1

// textOf returns a record's bytes.
func textOf(stream, seq, size int) []byte {
	size = max(size, shortest)
	text := fmt.Appendf(make([]byte, 0, size), "%d %04d %05d ", stream, seq, size)
	for i := len(text); i < size-1; i++ {
		text = append(text, 'a'+byte((stream*7+seq*31+i*3)%26))
	}
	return append(text, '\n')
}

type key struct{ stream, seq int }

// A ledger records the arguments and the results of calls.
type ledger struct {
	o      Opener
	loss   holdfast.Loss
	policy holdfast.Policy

	mu      sync.Mutex
	records map[key]*record
	next    map[int]int // by stream
	acked   []*record
	failed  bool // a call of the disk has failed: bounds by time, and of a power cut, no longer hold
	largest int
	stall   time.Duration // time of disk calls that is added to a bound by time
	// kept are the records that a kill [0] and a power cut [1] must leave, even after other losses.
	kept [2][]*record
}

func newLedger(o Opener, p holdfast.Policy) *ledger {
	l := &ledger{o: o, policy: p, loss: p.Loss(), records: map[key]*record{}, next: map[int]int{}}
	if o.Loss != nil {
		l.loss = o.Loss(p)
	}
	return l
}

// begin returns the next record of a stream.
func (l *ledger) begin(stream, size int) *record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &record{stream: stream, seq: l.next[stream]}
	r.text = textOf(stream, r.seq, size)
	l.next[stream]++
	l.records[key{stream, r.seq}] = r
	l.largest = max(l.largest, l.size(r))
	return r
}

// done records the result of a Write of the rest of a record.
func (l *ledger) done(r *record, n int, err error) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := len(r.text) - r.given
	if n < 0 || n > left || n < left && err == nil {
		return fmt.Sprintf("Write of %d bytes returns %d, %v", left, n, err)
	}
	r.given += n
	switch {
	case r.given == 0:
		r.state = refused
	case err != nil:
		r.state = accepted
	default:
		l.ackLocked(r)
	}
	return ""
}

func (l *ledger) ackLocked(r *record) {
	r.state, r.acked = acked, time.Now()
	l.acked = append(l.acked, r)
	if l.loss.Process.None() {
		l.keepLocked(0, r)
	}
	if l.loss.Power.None() {
		l.keepLocked(1, r)
	}
}

func (l *ledger) keepLocked(crash int, r *record) {
	if !r.kept[crash] {
		r.kept[crash] = true
		l.kept[crash] = append(l.kept[crash], r)
	}
}

// accepted returns the records that were accepted whole.
func (l *ledger) accepted() (all []*record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.given == len(r.text) {
			all = append(all, r)
		}
	}
	return all
}

// keep records that a Flush, or a Sync, of these records returned nil.
func (l *ledger) keep(all []*record, synced bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range all {
		l.keepLocked(0, r)
		if synced {
			l.keepLocked(1, r)
		}
	}
}

func (l *ledger) fail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = true
}

func (l *ledger) size(r *record) int {
	if l.o.Size == nil {
		return len(r.text)
	}
	return l.o.Size(len(r.text))
}

// A moment is a snapshot of the acknowledged records.
type moment struct {
	at     time.Time
	acked  []*record
	kept   [2][]*record
	failed bool
}

func (l *ledger) now() moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return moment{time.Now(), l.acked, l.kept, l.failed}
}

// find returns the whole records in pieces, and the problem of the other pieces. After a power cut
// any bytes may follow the durable records.
func (l *ledger) find(pieces [][]byte, power bool) (found map[key]bool, problem string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found = map[key]bool{}
	last := map[int]int{}
	unbound := power && !l.loss.Power.Limited() // names may be lost too, and the names that they replaced may be there
	anything := power && (l.o.Clean == nil || !l.o.Clean(l.policy))
	for i, piece := range pieces {
		r := l.parseLocked(piece)
		switch {
		case r == nil && (anything || l.tornLocked(piece, i == len(pieces)-1)):
		case r == nil:
			return found, fmt.Sprintf("piece %d of %d is no record: %.80q, %d bytes", i, len(pieces), piece, len(piece))
		case r.state == refused:
			return found, fmt.Sprintf("record %d of stream %d was refused, and is there", r.seq, r.stream)
		case unbound:
			found[key{r.stream, r.seq}] = true
		case found[key{r.stream, r.seq}]:
			return found, fmt.Sprintf("record %d of stream %d is there twice", r.seq, r.stream)
		case r.seq < last[r.stream]:
			return found, fmt.Sprintf("record %d of stream %d comes behind record %d", r.seq, r.stream, last[r.stream])
		default:
			found[key{r.stream, r.seq}] = true
			last[r.stream] = r.seq
		}
	}
	return found, ""
}

// parseLocked returns the record of a piece, or nil.
func (l *ledger) parseLocked(piece []byte) *record {
	if len(piece) < shortest {
		return nil
	}
	stream, _ := strconv.Atoi(string(piece[:1]))
	seq, _ := strconv.Atoi(string(piece[2:6]))
	if r := l.records[key{stream, seq}]; r != nil && bytes.Equal(r.text, piece) {
		return r
	}
	return nil
}

// tornLocked reports whether a piece may be a torn record: at the end of all, or where the subject
// ends such lines. A line feed alone ends one.
func (l *ledger) tornLocked(piece []byte, last bool) bool {
	part := string(piece)
	if l.o.Heals {
		part = strings.TrimSuffix(part, "\n")
	}
	if part == "" {
		return true
	}
	if !l.o.Heals && !last {
		return false
	}
	for _, r := range l.records {
		if len(part) < len(r.text) && strings.HasPrefix(string(r.text), part) {
			return true
		}
	}
	return false
}

// judge checks the pieces left by a crash against the acknowledgements at a moment.
func (l *ledger) judge(pieces [][]byte, at moment, power bool) string {
	found, problem := l.find(pieces, power)
	if problem != "" {
		return problem
	}
	crash, bound := 0, l.loss.Process
	if power {
		crash, bound = 1, l.loss.Power
	}
	for _, r := range at.kept[crash] {
		if !found[key{r.stream, r.seq}] {
			return fmt.Sprintf("record %d of stream %d is lost, of %d that a call returned nil for; %d are there", r.seq, r.stream, len(at.kept[crash]), len(found))
		}
	}
	if power && at.failed {
		return ""
	}
	lost := 0
	for _, r := range at.acked {
		if found[key{r.stream, r.seq}] {
			continue
		}
		lost += l.size(r)
		if age := at.at.Sub(r.acked); !at.failed && bound.Time != holdfast.Unlimited && age > bound.Time+l.stall {
			return fmt.Sprintf("record %d of stream %d is lost %v after it was acknowledged; the policy allows %v", r.seq, r.stream, age, bound)
		}
	}
	most := int(bound.Bytes)
	if bound.InFlight { // bytes accepted during a sync: see holdfast.Bound
		most += int(l.policy.Sync.Bytes) + 4*l.largest // one for each goroutine
	}
	if bound.Bytes != holdfast.Unlimited && lost > most {
		return fmt.Sprintf("%d acknowledged bytes are lost; the policy allows %v", lost, bound)
	}
	return ""
}

// missing returns the number of wholly accepted records that are not in found. If each call stands
// for itself, its error says that its record may be missing.
func (l *ledger) missing(found map[key]bool) (n int) {
	for _, r := range l.accepted() {
		if l.o.FailedSync == OfCall && r.state != acked {
			continue
		}
		if !found[key{r.stream, r.seq}] {
			n++
		}
	}
	return n
}
