package crash

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Failure is a state that breaks a promise, with everything needed to judge it again.
type Failure struct {
	Violation *Violation
	State     State
	Words     string        // a guess at the cause
	Log       *Log          // up to the state
	Targets   []Target      `json:"-"` // of the log's workload
	Loss      holdfast.Loss `json:"-"`
	// Read says what is in a state, see [Exploration].
	Read func(Tree) (*Survivors, error) `json:"-"`
	by   func(Tree, int64) *Violation   // see explorer
	Kill int                            `json:",omitempty"` // level kill: which run of a directory was killed; there is no log
	// Calls are, at level fault where a sync fails, the calls before and behind it, and what the power cut took: the verdict follows from them.
	Calls []string `json:",omitempty"`
}

// An explorer judges crash states of logs.
type explorer struct {
	targets []Target
	loss    holdfast.Loss
	read    func(Tree) (*Survivors, error) // where paths do not say what is there
	by      func(Tree, int64) *Violation   // judges a state itself, by how many bytes of notes a program had printed
	starts  []int                          // the entries at which a program was started again: what it finds and promises then is judged more often
	late    func() bool                    // to read a state takes long
	torn    []State                        // some power cuts that left a torn tail, of the log explored last
	only    Kind                           // of crashes; "" is both
	leaps   []int                          // positions that are judged in any case, see leapsOf
	from    int                            // no position before this is judged
}

// failure is one of a log.
func (x *explorer) failure(l *Log, s State, v *Violation) *Failure {
	return &Failure{Violation: v, State: s, Log: l, Words: v.Words, Targets: x.targets, Loss: x.loss, Read: x.read, by: x.by}
}

// judgeState judges a state of a disk.
func (x *explorer) judgeState(c *Checker, d *disk, s *State, found *Survivors) *Violation {
	if x.by != nil {
		c.Tally.States++
		return x.by(d.tree(s), int64(c.known[0][Durable]))
	}
	if x.read == nil {
		d.survivors(s, found)
		return c.Judge(s.Crash, found, d.log.at(d.position), d.log.slack())
	}
	there, err := x.read(d.tree(s))
	*found = *there
	v := c.Judge(s.Crash, found, d.log.at(d.position), -1)
	if v == nil {
		return nil
	}
	if p := d.log.Program; p != nil {
		v.Words = p.Words(v, c)
	}
	if err != nil {
		v.Words += fmt.Sprintf(" (%v)", err)
	}
	return v
}

// checkerOf returns a checker, and the disk, both before the first crash point of a log.
func (x *explorer) begin(l *Log) (*Checker, *disk) {
	c, d := NewChecker(x.targets, x.loss), newDisk(l, x.targets)
	for d.position < l.Start {
		x.step(c, d)
	}
	if l.Again { // the first run's records must stay
		c.Inherit(x.there(d))
	}
	if l.Program != nil {
		c.Note(anyBegun)
	}
	return c, d
}

func (x *explorer) step(c *Checker, d *disk) {
	switch e := d.advance(); e.Op {
	case Noted:
		c.Note(*e.Note)
	case Killed:
		c.Restart(x.there(d))
	}
}

// there is all that programs see at the disk's position.
func (x *explorer) there(d *disk) *Survivors {
	all, s := State{Crash: Power, Keep: len(d.pending)}, NewSurvivors(len(x.targets))
	if d.survivors(&all, s); x.read != nil {
		s, _ = x.read(d.tree(&all)) // an unreadable file counts as empty
	}
	return s
}

// explore judges about this number of states of a log, evenly over its positions; where a state takes long to judge, half of them
// behind changes of names. It ends with the first violation, if there is one.
func (x *explorer) explore(l *Log, states int, seed uint64) (Tally, *Failure) {
	c, d := x.begin(l)
	r := rand.New(rand.NewPCG(seed, l.Seed))
	found := NewSurvivors(len(x.targets))
	positions := len(l.Entries) - max(l.Start, x.from) + 1
	const statesRead, least = 6, 3 // where its power is cut, at least
	most := max(least, (states+positions-1)/positions)
	slow := x.slow()
	anywhere, renames := positions*statesRead, 0
	if slow {
		most = max(statesRead, most)
		for at := len(l.Entries) - positions + 1; at <= len(l.Entries); at++ {
			if l.renamed(at) {
				renames++
			}
		}
		if renames > 0 { // half of the states are there
			anywhere *= 2
		}
	}
	var seen []State
	var failure *Failure
	x.torn = x.torn[:0]
	chosen := func() bool {
		switch {
		case d.position == len(l.Entries): // however late it is: all has been acknowledged there
			return true
		case !slow:
			return least*positions <= states || r.IntN(least*positions) < states
		}
		return (r.IntN(anywhere) < states || l.renamed(d.position) && r.IntN(2*max(1, renames)*statesRead) < states ||
			x.starting(d.position) && r.IntN(3) == 0 || slices.Contains(x.leaps, d.position)) && !x.late()
	}
	for failure == nil {
		// Acknowledgements follow each other without anything happening to the disk: the last
		// demands the most.
		if chosen() && d.position >= x.from && (d.position == len(l.Entries) || l.Entries[d.position].Op != Noted || l.Entries[d.position].Note.Kind == Accepted) {
			d.states(r, most, &seen, func(s *State) {
				if failure != nil || x.only != "" && s.Crash != x.only {
					return
				}
				if v := x.judgeState(c, d, s, found); v != nil {
					failure = x.failure(l, *s, v)
				}
				if found.TornTails > 0 && s.Crash == Power && len(x.torn) < 16 {
					x.torn = append(x.torn, *s)
				} else if found.TornTails > 0 && s.Crash == Power {
					x.torn[r.IntN(len(x.torn))] = *s
				}
			})
		}
		if d.position == len(l.Entries) {
			break
		}
		x.step(c, d)
	}
	return c.Tally, failure
}

// slow reports whether a state takes long to judge, because a reader of its own says what is there.
func (x *explorer) slow() bool {
	return x.read != nil || x.by != nil || slices.ContainsFunc(x.targets, func(t Target) bool { return t.Gather != nil })
}

// renamed reports whether a position is behind a change of names, with no more than notes between. A crash there may keep that
// change without what was before it.
func (l *Log) renamed(position int) bool { return l.change(position) != nil }

// change is the change of names that a position is behind, see renamed, or nil.
func (l *Log) change(position int) *Entry {
	for position > 0 && l.Entries[position-1].Op == Noted {
		position--
	}
	if position == 0 || l.Entries[position-1].Op != Name {
		return nil
	}
	return &l.Entries[position-1]
}

// starting reports whether a position is behind the start of a program.
func (x *explorer) starting(position int) bool {
	return slices.ContainsFunc(x.starts, func(start int) bool { return start <= position && position < start+16 })
}

// leapsOf are the positions behind some notes of a program, those by which it has printed most since the note before, and where it
// had emptied a file.
func leapsOf(l *Log, most int) (positions []int) {
	var emptied []int
	by, before := map[int]uint64{}, uint64(0)
	for i := l.Start; i < len(l.Entries); i++ {
		if n := l.Entries[i].Note; n != nil {
			by[i+1], before = n.N-before, n.N
			positions = append(positions, i+1)
		} else if e := &l.Entries[i]; e.Op == Resize && e.Offset == 0 {
			emptied = append(emptied, i+1)
		}
	}
	slices.SortStableFunc(positions, func(a, b int) int { return cmp.Compare(by[b], by[a]) })
	return append(positions[:min(len(positions), most)], emptied[max(0, len(emptied)-most/4):]...)
}

// at is the latest time at which a crash finds the log at a position. If nothing happens for long, a
// crash at the end of that time loses most.
func (l *Log) at(position int) int64 {
	if len(l.Entries) == 0 {
		return 0
	}
	return l.Entries[min(position, len(l.Entries)-1)].At
}

func (l *Log) slack() time.Duration {
	if !l.Fake {
		return -1
	}
	return l.Slack
}

// judge judges one state of a log.
func (x *explorer) judge(l *Log, s State) *Violation {
	c, d := x.begin(l)
	for d.position < s.Position {
		x.step(c, d)
	}
	return x.judgeState(c, d, &s, NewSurvivors(len(x.targets)))
}

// Tree lists the files in the failing state.
func (f *Failure) Tree() Tree {
	d := newDisk(f.Log, nil)
	for d.position < f.State.Position {
		d.advance()
	}
	return d.tree(&f.State)
}

// Replay judges the state of a failure that was kept again. Its workload is one of these. The state of a program
// takes Targets and Loss, and Read is needed where the exploration had it.
func (f *Failure) Replay(workloads []*Workload) (*Violation, error) {
	if f.Log == nil {
		return nil, errors.New("a kill keeps no log: what survived depends on the moment")
	}
	if f.Log.Program == nil {
		w := Find(workloads, f.Log.Workload)
		p, err := holdfast.ParsePolicy(f.Log.Policy)
		if w == nil || err != nil {
			return nil, fmt.Errorf("there is no workload %q, or no policy %q", f.Log.Workload, f.Log.Policy)
		}
		f.Targets, f.Loss = w.Targets(p), w.lossOf(p)
	}
	if f.State.Position < f.Log.Start || f.State.Position > len(f.Log.Entries) {
		return nil, fmt.Errorf("the state is at entry %d, and the log has %d", f.State.Position, len(f.Log.Entries))
	}
	x := &explorer{targets: f.Targets, loss: f.Loss, read: f.Read}
	return x.judge(f.Log, f.State), nil
}

// Shrink looks for the shortest prefix of the log and the fewest pending writes that still break
// the same promise. It keeps these, and explains what is left.
func (f *Failure) Shrink() {
	if f.Log == nil { // its words say which call failed, or what was attacked
		return
	}
	if f.Violation.Rule == "again" || f.Violation.Rule == "temporaries" {
		f.Words = f.Violation.Words
		return
	}
	x := &explorer{targets: f.Targets, loss: f.Loss, read: f.Read, by: f.by}
	fails := func(s State) *Violation {
		if v := x.judge(f.Log, s); v != nil && v.Rule == f.Violation.Rule {
			return v
		}
		return nil
	}
	try := func(s State) bool {
		v := fails(s)
		if v != nil {
			f.State, f.Violation = s, v
		}
		return v != nil
	}
	whole := []State{{Crash: f.State.Crash}, f.State}
	if x.read != nil || x.by != nil { // to read each position would take too long
		f.shrinkRead(try)
		whole = nil
	}
	// The first position that fails with nothing pending on the disk, or with the same choice.
	for _, s := range whole {
		c, d := x.begin(f.Log)
		found := NewSurvivors(len(x.targets))
		for ; d.position < f.State.Position; x.step(c, d) {
			if s.Crash == Process {
				s.Keep = len(d.pending)
			}
			if v := x.judgeState(c, d, &s, found); v != nil && v.Rule == f.Violation.Rule {
				s.Position = d.position
				f.State, f.Violation = s, v
				break
			}
		}
	}
	if f.State.Crash == Power {
		if s := f.State; s.Tear != 0 {
			s.Tear, s.Mask = 0, s.Mask&^1
			try(s)
		}
		if s := f.State; s.Rest {
			s.Rest = false
			try(s)
		}
		for bit := 63; bit >= 0; bit-- {
			if s := f.State; s.Mask>>bit&1 != 0 {
				s.Mask &^= 1 << bit
				if s.Tear == 0 || bit > 0 {
					try(s)
				}
			}
		}
		for step := f.State.Keep; step > 0; {
			if s := f.State; s.Mask == 0 && !s.Rest && s.Keep >= step {
				if s.Keep -= step; try(s) {
					step = min(step, f.State.Keep)
					continue
				}
			}
			step /= 2
		}
	}
	l := f.Log // up to the state, with one entry more, which says when the crash was
	f.Log = &Log{Workload: l.Workload, Policy: l.Policy, Seed: l.Seed, Sector: l.Sector, Start: l.Start, Slack: l.Slack,
		Fake: l.Fake, Again: l.Again, Naming: l.Naming, FS: l.FS, Program: l.Program, Links: l.Links, Entries: l.Entries[:min(len(l.Entries), f.State.Position+1)]}
	if f.Words = f.explain(); f.by != nil {
		f.Words = f.Violation.Words + f.missing()
	}
}

// missing says what of a state of files a power cut has taken.
func (f *Failure) missing() string {
	d := newDisk(f.Log, nil)
	for d.position < f.State.Position {
		d.advance()
	}
	var gone []string
	for rank, i := range d.pending {
		if f.State.kept(rank) && (f.State.Tear == 0 || rank != f.State.Keep) {
			continue
		}
		switch e := &f.Log.Entries[i]; e.Op {
		case Write:
			part := ""
			if f.State.Tear != 0 && rank == f.State.Keep {
				part = "a part of "
			}
			gone = append(gone, fmt.Sprintf("%sbytes %d to %d of %s", part, e.Offset, e.Offset+int64(len(e.Data)), d.nameOf(e.File)))
		case Resize:
			gone = append(gone, fmt.Sprintf("the size %d of %s", e.Offset, d.nameOf(e.File)))
		case Name:
			x := e.Edits[len(e.Edits)-1]
			gone = append(gone, fmt.Sprintf("the change of the name %s", x.Name))
		}
	}
	if f.State.Crash == Process {
		return ""
	}
	const most = 3
	plural := "s"
	if len(d.pending) == 1 {
		plural = ""
	}
	words := fmt.Sprintf("; the power was cut with %d change%s that no sync had covered", len(d.pending), plural)
	if len(gone) == 0 {
		return words
	}
	if more := len(gone) - most; more > 0 {
		gone = append(gone[:most], fmt.Sprintf("%d more", more))
	}
	return words + ", and took " + strings.Join(gone, ", ")
}

// nameOf is a name that a file has or had.
func (d *disk) nameOf(file uint64) (name string) {
	for i := range d.log.Entries[:d.position] {
		for _, x := range d.log.Entries[i].Edits {
			if x.File == file {
				name = x.Name
			}
		}
	}
	return cmp.Or(name, "a file without a name")
}

// shrinkRead looks for an early position that fails with nothing pending on the disk.
func (f *Failure) shrinkRead(try func(State) bool) {
	if f.State.Crash != Power || !try(State{Crash: Power, Position: f.State.Position}) {
		return
	}
	for step := (f.State.Position - f.Log.Start) / 2; step > 0; step /= 2 {
		for s := f.State; s.Position-step >= f.Log.Start; s = f.State {
			if s.Position -= step; !try(s) {
				break
			}
		}
	}
}

// explain says in words why what is missing is not there.
func (f *Failure) explain() string {
	v, l := f.Violation, f.Log
	var words strings.Builder
	words.WriteString(v.Words)
	if v.Rule != "lost" || int(v.ID) >= len(f.Targets) {
		return words.String()
	}
	t := f.Targets[v.ID]
	n := v.N + 1 // the first missing record's number, counted as notes count
	what := fmt.Sprintf("record %d", v.N)
	switch {
	case l.Program != nil:
		what = fmt.Sprintf("record %d", n)
	case t.Object:
		n, what = 0, t.Path
	}
	d := newDisk(l, f.Targets)
	for d.position < f.State.Position {
		d.advance()
	}
	end := int64(-1) // of the record in its file
	number := uint64(0)
	for n, in := range d.files {
		if ends := in.parse.ends[v.ID]; !t.Object && v.N < uint64(len(ends)) {
			number, end = n, ends[v.N]
		}
	}
	written, noted := -1, -1
	kind := "acknowledged"
	for i, e := range l.Entries[:f.State.Position] {
		if e.Op == Noted && e.Note.ID == v.ID && e.Note.Kind >= Accepted && e.Note.N >= n && (noted < 0 || t.Object) {
			if noted = i; e.Note.Kind == Accepted {
				kind = "accepted, which this policy makes an acknowledgement,"
			}
		}
		if e.Op != Write {
			continue
		}
		r, ok := ReadRecord(e.Data)
		if e.File == number && e.Offset < end && end <= e.Offset+int64(len(e.Data)) || t.Object && ok && r.ID == v.ID {
			written = i
		}
	}
	if noted >= 0 {
		fmt.Fprintf(&words, ". %s was %s at log entry %d", what, kind, noted)
	}
	switch {
	case l.Program != nil:
		fmt.Fprintf(&words, "; %d steps were pending", len(d.pending))
	case written < 0:
		words.WriteString("; no write before the crash had it")
	case f.State.Crash == Power:
		state := "was on the disk, but not its name, or bytes before it were missing"
		if slices.Contains(d.pending, written) {
			state = "was pending; no flush that covers it came between"
		}
		fmt.Fprintf(&words, "; its write at %d %s", written, state)
	}
	if f.State.Position <= len(l.Entries) {
		fmt.Fprintf(&words, "; the crash came before entry %d", f.State.Position)
	}
	return words.String()
}
