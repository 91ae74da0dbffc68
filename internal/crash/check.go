package crash

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Kind of crash says what died.
type Kind string

// The kinds of crashes.
const (
	Process Kind = "process" // memory is gone, what the kernel took is there
	Power   Kind = "power"   // unsynced bytes may be gone, in any part
)

// A Target is one output of a workload, which is judged: a stream of records, several of which
// may share a file, or an object.
type Target struct {
	ID     uint32
	Path   string // with slashes, below the directory of the workload
	Object bool   // the file is one record: old or new
	Whole  bool   // an object is whole at any time, though a newer one has begun
	Synced bool   // and after a power cut too
	Part   bool   // a part of it may be there until the first has been accepted
	// Gather returns the records of a stream that is in more files than one, from the files of directories. They are
	// by their names, without files of directories below. It is nil where Path has all records.
	Gather func(dirs ...map[string][]byte) []byte
}

// Survivors are a crash's remains, by the IDs of the targets.
type Survivors struct {
	N         []uint64 // how many records of the stream, or the version; 0 is none
	Disorder  []bool   // a record is not where it belongs
	Half      []bool   // the object is neither old nor new
	TornTails int      // files with bytes behind their last whole record
	TornBytes int64    // those bytes, as far as they are known
	// Temporaries is how many files are there that are no target's.
	Temporaries int
}

// NewSurvivors returns what is left if nothing is.
func NewSurvivors(targets int) *Survivors {
	return &Survivors{N: make([]uint64, targets), Disorder: make([]bool, targets), Half: make([]bool, targets)}
}

// A Violation is a broken promise.
type Violation struct {
	Rule  string // lost, order, half, invented, bytes, age
	ID    uint32
	N     uint64 // the first record that is missing, or the version
	Words string
}

func (v *Violation) Error() string { return v.Words }

// An Extent is how much was accepted and then lost, which the policy may allow.
type Extent struct {
	Records int64
	Bytes   int64
	Age     time.Duration // of the oldest, from its acceptance to the crash
}

// A Tally sums up what was judged.
type Tally struct {
	States       int64
	Acknowledged int64  // records and versions acknowledged as durable, or as flushed where only that is promised
	Violations   int64  // states with one
	Lost         int64  // records and versions that were acknowledged and are not there
	Most         Extent // each by itself
	Sum          Extent
	TornTails    int64
	Disorder     int64
	Temporaries  int   // the most in one state
	TemporaryEnd int   // after the next run had ended in order
	Unmountable  int64 `json:",omitempty"` // states
}

// Add adds another tally.
func (t *Tally) Add(o Tally) {
	t.States += o.States
	t.Acknowledged += o.Acknowledged
	t.Violations += o.Violations
	t.Lost += o.Lost
	t.Most = Extent{max(t.Most.Records, o.Most.Records), max(t.Most.Bytes, o.Most.Bytes), max(t.Most.Age, o.Most.Age)}
	t.Sum = Extent{t.Sum.Records + o.Sum.Records, t.Sum.Bytes + o.Sum.Bytes, t.Sum.Age + o.Sum.Age}
	t.TornTails += o.TornTails
	t.Disorder += o.Disorder
	t.Temporaries = max(t.Temporaries, o.Temporaries)
	t.TemporaryEnd = max(t.TemporaryEnd, o.TemporaryEnd)
	t.Unmountable += o.Unmountable
}

// A Checker judges what survived a crash. It knows the acknowledgements so far and the policy's
// allowed loss, and nothing else.
type Checker struct {
	Tally   Tally
	loss    holdfast.Loss
	targets []Target
	known   [][noteKinds]uint64
	half    []bool // the object was neither old nor new when this run began
	taken   []acceptance
}

// acceptance records the known accepted records of a target, from the first of this run.
type acceptance struct {
	first uint64
	bytes []int64 // sums
	at    []int64
}

// NewChecker returns a checker of targets, whose IDs are their places.
func NewChecker(targets []Target, loss holdfast.Loss) *Checker {
	return &Checker{loss: loss, targets: targets, known: make([][noteKinds]uint64, len(targets)), half: make([]bool, len(targets)), taken: make([]acceptance, len(targets))}
}

// clone returns a checker that knows the same.
func (c *Checker) clone() *Checker {
	same := *c
	same.known, same.half, same.taken = slices.Clone(c.known), slices.Clone(c.half), slices.Clone(c.taken)
	return &same
}

// Inherit says what an earlier crash left: this run begins with it, and it must stay.
func (c *Checker) Inherit(s *Survivors) {
	copy(c.half, s.Half)
	for id, n := range s.N {
		for kind := Begun; kind < noteKinds; kind++ {
			c.known[id][kind] = n
		}
		c.taken[id] = acceptance{first: n}
	}
}

// Restart says what the end of the process has left. The next process goes on with that, which the disk may not have yet.
func (c *Checker) Restart(s *Survivors) {
	for id, n := range s.N {
		k := &c.known[id]
		if !s.Half[id] {
			k[Accepted], k[Flushed] = min(k[Accepted], n), n
		}
		c.taken[id] = acceptance{first: n}
	}
}

// Note takes an acknowledgement. Notes of one ID come in their order, but for one that claims less
// than is known, which changes nothing.
func (c *Checker) Note(n Note) {
	if int(n.ID) >= len(c.known) {
		return
	}
	k := &c.known[n.ID]
	if before := max(k[Flushed], k[Durable]); n.Kind >= Flushed && n.N > before {
		c.Tally.Acknowledged += int64(c.targets[n.ID].lost(n.N, before))
	}
	for kind := Begun; kind <= n.Kind; kind++ { // durable records are accepted too
		k[kind] = max(k[kind], n.N)
	}
	if n.Kind == Accepted {
		t := &c.taken[n.ID]
		sum := n.Bytes
		if len(t.bytes) > 0 {
			sum += t.bytes[len(t.bytes)-1]
		}
		t.bytes, t.at = append(t.bytes, sum), append(t.at, n.At)
	}
}

// Begun returns the highest number of a target that was begun.
func (c *Checker) Begun(id uint32) uint64 { return c.known[id][Begun] }

// Judge judges one state. now is the time of the crash; with a slack of less than 0 bounds by
// time are not judged. It returns the first violation.
func (c *Checker) Judge(crash Kind, s *Survivors, now int64, slack time.Duration) *Violation {
	bound, acknowledged := c.loss.Power, Durable
	if crash == Process {
		bound, acknowledged = c.loss.Process, Flushed
	}
	none := bound.None()
	var first *Violation
	fail := func(v *Violation) {
		if first == nil {
			first = v
		}
	}
	var lost Extent
	for id := range c.targets {
		t, k, n := &c.targets[id], &c.known[id], s.N[id]
		whole := t.Whole && (crash == Process || t.Synced)
		must := max(k[acknowledged], k[Durable])
		if none {
			must = max(must, k[Accepted])
		}
		if n < must && !(t.Object && !whole && s.Half[id] && k[Begun] > must) {
			c.Tally.Lost += int64(t.lost(must, n))
			fail(&Violation{"lost", uint32(id), n, fmt.Sprintf("%s: %s, and %s there", t.Path, t.claimed(must), t.found(n, s.Half[id]))})
		}
		if s.Disorder[id] {
			c.Tally.Disorder++
			words := fmt.Sprintf("%s: behind record %d of writer %d stands one that does not follow it", t.Path, int64(n)-1, id)
			if n == 0 {
				words = fmt.Sprintf("%s: the first record of writer %d that is there is not its first", t.Path, id)
			}
			fail(&Violation{"order", uint32(id), n, words})
		}
		if s.Half[id] && !((c.half[id] || t.Part) && k[Accepted] == 0) && (whole || k[Begun] == must && must > 0) {
			fail(&Violation{"half", uint32(id), n, fmt.Sprintf("%s: the file is neither the old nor the new one", t.Path)})
		}
		if n > k[Begun] {
			fail(&Violation{"invented", uint32(id), n, fmt.Sprintf("%s: %s there, and only %d were begun", t.Path, t.found(n, false), k[Begun])})
		}
		if n < k[Accepted] && !(t.Object && !t.Whole && s.Half[id] && k[Begun] > k[Accepted]) { // else the next version's writer has cut it
			c.lose(&lost, id, n, now)
		}
	}
	lost.Bytes = max(0, lost.Bytes-s.TornBytes) // a torn record is lost, but not the part of it that is there
	limited := !none && !bound.InFlight
	if limited && bound.Bytes != holdfast.Unlimited && lost.Bytes > int64(bound.Bytes) {
		fail(&Violation{Rule: "bytes", Words: fmt.Sprintf("%d accepted bytes are lost, the policy allows %v", lost.Bytes, bound)})
	}
	if limited && bound.Time != holdfast.Unlimited && slack >= 0 && lost.Age > bound.Time+slack {
		fail(&Violation{Rule: "age", Words: fmt.Sprintf("a record is lost that was accepted %v before the crash, the policy allows %v", lost.Age, bound)})
	}
	c.Tally.Add(Tally{States: 1, Most: lost, Sum: lost, TornTails: int64(s.TornTails), Temporaries: s.Temporaries})
	if first != nil {
		c.Tally.Violations++
	}
	return first
}

// lose adds the accepted records from n on to the lost ones.
func (c *Checker) lose(lost *Extent, id int, n uint64, now int64) {
	t := &c.taken[id]
	if c.targets[id].Object {
		lost.Records++
		return
	}
	have := int(min(uint64(len(t.at)), n-min(n, t.first)))
	lost.Records += int64(len(t.at) - have)
	if have == len(t.at) {
		return
	}
	lost.Bytes += t.bytes[len(t.bytes)-1]
	if have > 0 {
		lost.Bytes -= t.bytes[have-1]
	}
	lost.Age = max(lost.Age, time.Duration(now-t.at[have]))
}

func (t *Target) lost(must, n uint64) uint64 {
	if t.Object {
		return 1
	}
	return must - n
}

func (t *Target) claimed(n uint64) string {
	if t.Object {
		return fmt.Sprintf("version %s was acknowledged", version(n))
	}
	return fmt.Sprintf("record %d of writer %d was acknowledged", n-1, t.ID)
}

func (t *Target) found(n uint64, half bool) string {
	switch {
	case half:
		return "no whole version is"
	case n == 0 && t.Object:
		return "no file is"
	case n == 0:
		return "none is"
	case t.Object:
		return fmt.Sprintf("version %s is", version(n))
	}
	return fmt.Sprintf("only those up to %d are", n-1)
}

// version shows the run and the number of an object's version.
func version(n uint64) string { return fmt.Sprintf("%d.%d", n>>32, n&(1<<32-1)) }

// A parse is the records of a file of streams, as far as they follow each other.
type parse struct {
	end      int64 // of the last whole record
	records  []int64
	disorder int64              // where the first record in the wrong place begins, or -1
	ends     map[uint32][]int64 // of the records of each ID, in order
}

func newParse() *parse { return &parse{disorder: -1, ends: map[uint32][]int64{}} }

// extend reads the records behind the known ones.
func (p *parse) extend(b []byte) {
	for p.end < int64(len(b)) {
		r, ok := ReadRecord(b[p.end:])
		if !ok {
			return
		}
		if p.disorder < 0 && r.N != uint64(len(p.ends[r.ID])) {
			p.disorder = p.end
		}
		p.end += int64(r.Size)
		p.ends[r.ID] = append(p.ends[r.ID], p.end)
		p.records = append(p.records, p.end)
	}
}

// Records says where the last whole record at the beginning of b ends, how many each ID has there, and whether
// they follow each other.
func Records(b []byte) (end int64, count func(id uint32) uint64, ordered bool) {
	p := newParse()
	p.extend(b)
	return p.end, func(id uint32) uint64 { return uint64(len(p.ends[id])) }, p.disorder < 0
}

// cut forgets what it knows of the bytes from an offset on.
func (p *parse) cut(at int64) {
	if at >= p.end {
		return
	}
	p.records = p.records[:below(p.records, at)]
	p.end = 0
	if n := len(p.records); n > 0 {
		p.end = p.records[n-1]
	}
	for id, ends := range p.ends {
		p.ends[id] = ends[:below(ends, at)]
	}
	if p.disorder >= p.end {
		p.disorder = -1
	}
}

// below returns how many ends are not above an offset.
func below(ends []int64, at int64) int {
	return sort.Search(len(ends), func(i int) bool { return ends[i] > at })
}

// Survey adds a file's records to the survivors, for the targets of its path. A file that is
// not there is nil, and an empty one is not.
func (s *Survivors) Survey(targets []Target, ids []uint32, data []byte) {
	if data == nil {
		return
	}
	if t := targets[ids[0]]; t.Object {
		r, ok := ReadRecord(data)
		if ok && r.Size == len(data) && r.ID == t.ID {
			s.N[t.ID] = r.N
		} else {
			s.Half[t.ID] = true
		}
		return
	}
	p := newParse()
	p.extend(data)
	if p.end < int64(len(data)) {
		s.TornTails++
		s.TornBytes += int64(len(data)) - p.end
	}
	s.take(ids, p, int64(len(data)))
}

// take takes the records that end at or below an offset.
func (s *Survivors) take(ids []uint32, p *parse, upTo int64) {
	strangers := len(p.ends)
	for _, id := range ids {
		ends, ok := p.ends[id]
		if ok {
			strangers--
		}
		s.N[id] = uint64(below(ends, upTo))
		s.Disorder[id] = p.disorder >= 0 && p.disorder < upTo
	}
	if strangers > 0 {
		s.Disorder[ids[0]] = true
	}
}

// byPath returns the paths of targets in their order, and the IDs of each.
func byPath(targets []Target) (paths []string, ids map[string][]uint32) {
	ids = map[string][]uint32{}
	for _, t := range targets {
		if !slices.Contains(paths, t.Path) {
			paths = append(paths, t.Path)
		}
		ids[t.Path] = append(ids[t.Path], t.ID)
	}
	return paths, ids
}
