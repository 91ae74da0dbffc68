package crash

import (
	"bytes"
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
)

// A State is one thing that a crash may leave. It has the entries of a log below Position that are
// on the disk, and a choice of the pending ones. It is the same at any time, for the same log.
type State struct {
	Crash    Kind
	Position int
	Keep     int    // the number of pending entries that are there, the oldest
	Mask     uint64 // of the 64 behind these, which are there too
	Rest     bool   // all behind those 64 are there
	Tear     uint64 `json:",omitempty"` // not 0: the entry behind Keep is there in these sectors only
}

// A disk is the result of a log's entries below a position: the kernel's view, the stable view, and
// the pending entries. It only goes forward.
type disk struct {
	log      *Log
	position int
	files    map[uint64]*file
	pending  []int // entries: writes, resizes and names
	naming   int   // how many of them are names
	names    map[Edit]uint64
	byPath   []*named
	targets  []Target
	paths    map[string][]uint32
	strange  int  // names on the disk that are no target's nor a directory's
	moved    bool // names changed on the disk since byPath and strange were looked up
	scratch  map[Edit]uint64
	flat     []byte
}

// A named is the path of one or more targets.
type named struct {
	ids  []uint32
	name string
	file uint64 // 0: not on the disk
}

// A file has two views: stable is on the disk, programs see kernel.
type file struct {
	stable, kernel []byte
	pending        []int
	lost           []int // entries of writes whose sync failed: programs still see their bytes
	parse          *parse
	odd            bool // bytes were written over or lost, so that only its bytes tell what is there
}

// newDisk returns the disk of a log before its first entry.
func newDisk(l *Log, targets []Target) *disk {
	d := &disk{log: l, targets: targets, files: map[uint64]*file{}, names: map[Edit]uint64{}, scratch: map[Edit]uint64{}}
	var names []string
	names, d.paths = byPath(targets)
	for _, name := range names {
		d.byPath = append(d.byPath, &named{ids: d.paths[name], name: name})
	}
	return d
}

func (d *disk) file(n uint64) *file {
	f := d.files[n]
	if f == nil {
		f = &file{parse: newParse()}
		d.files[n] = f
	}
	return f
}

// advance applies the next entry.
func (d *disk) advance() *Entry {
	e := &d.log.Entries[d.position]
	switch e.Op {
	case Write:
		f := d.file(e.File)
		if e.Offset != int64(len(f.kernel)) {
			f.odd = f.odd || e.Offset < int64(len(f.kernel)) || len(f.pending) > 0
		}
		f.parse.cut(e.Offset)
		f.kernel = e.onto(f.kernel)
		f.parse.extend(f.kernel)
		f.pending = append(f.pending, d.position)
		d.pending = append(d.pending, d.position)
	case Resize:
		f := d.file(e.File)
		f.odd = true
		f.parse.cut(e.Offset)
		f.kernel = e.onto(f.kernel)
		f.pending = append(f.pending, d.position)
		d.pending = append(d.pending, d.position)
	case Name:
		d.naming++
		d.pending = append(d.pending, d.position)
	case Flush, Lose:
		d.settle(e)
	}
	d.position++
	return e
}

// onto applies a write or a resize to a file's bytes.
func (e *Entry) onto(b []byte) []byte {
	end := e.Offset
	if e.Op == Write {
		end += int64(len(e.Data))
	}
	if more := end - int64(len(b)); more > 0 {
		b = append(b, make([]byte, more)...)
	}
	if e.Op == Resize {
		return b[:e.Offset]
	}
	copy(b[e.Offset:], e.Data)
	return b
}

// settle brings what an entry covers to the disk, or takes it away for good.
func (d *disk) settle(by *Entry) {
	rest := d.pending[:0]
	with := map[uint64]bool{}
	if by.File != 0 { // a directory's names come with the names that they build on, and so does a new file's
		before := map[Edit]bool{}
		for _, i := range slices.Backward(d.pending) {
			e := &d.log.Entries[i]
			if e.Op != Name || i >= by.UpTo {
				continue
			}
			new := d.log.names(e, by.File)
			if new || slices.ContainsFunc(e.Edits, func(x Edit) bool {
				return x.Dir == by.File || x.File != 0 && with[x.File] || before[Edit{Dir: x.Dir, Name: x.Name}]
			}) {
				for _, y := range e.Edits {
					with[y.File] = y.File != 0
					if d.log.Naming {
						before[Edit{Dir: y.Dir, Name: y.Name}] = true
					}
				}
				with[uint64(i)<<32] = true
			}
		}
	}
	upTo := by.UpTo // of a part of a file: a size that is pending comes with all before it
	if by.Length > 0 {
		upTo = 0
		for _, i := range d.pending {
			if e := &d.log.Entries[i]; e.Op == Resize && e.File == by.File && i < by.UpTo {
				upTo = i + 1
			}
		}
	}
	for _, i := range d.pending {
		e := &d.log.Entries[i]
		mine := by.File == 0 || e.Op != Name && e.File == by.File || e.Op == Name && with[uint64(i)<<32]
		if by.Length > 0 && e.Op == Write && e.File == by.File && i < by.UpTo && by.Offset <= e.Offset && e.Offset+int64(len(e.Data)) <= by.Offset+by.Length {
			mine = true
		} else if i >= by.UpTo || e.Op != Name && i >= upTo {
			mine = false
		}
		if !mine {
			rest = append(rest, i)
			continue
		}
		if e.Op == Name {
			if d.naming--; by.Op == Flush {
				d.rename(e.Edits)
			}
			continue
		}
		f := d.file(e.File)
		if by.Op == Flush {
			f.stable = e.onto(f.stable)
			d.takeAlong(f, e)
		} else {
			f.odd = true
			f.lost = append(f.lost, i)
		}
		at, _ := slices.BinarySearch(f.pending, i)
		if at > 0 { // an older one still is pending
			f.odd = true
		}
		f.pending = slices.Delete(f.pending, at, at+1)
		if f.odd && len(f.pending) == 0 && by.Op == Flush && bytes.Equal(f.stable, f.kernel) {
			f.odd = false
		}
	}
	d.pending = rest
}

// takeAlong brings bytes of failed syncs to the disk that are in a sector of a write which gets there: the page cache still has
// them (ext4 and xfs, by Rebello et al., "Can Applications Recover from fsync Failures?", 2020), and a page is written whole.
func (d *disk) takeAlong(f *file, e *Entry) {
	if e.Op != Write || len(e.Data) == 0 {
		return
	}
	first, behind := d.log.sector(e.Offset)
	if last := e.Offset + int64(len(e.Data)) - 1; last >= behind {
		_, behind = d.log.sector(last)
	}
	for _, i := range f.lost {
		x := &d.log.Entries[i]
		from, to := max(first, x.Offset), min(behind, x.Offset+int64(len(x.Data)), int64(len(f.kernel)))
		if from >= to {
			continue
		}
		f.stable = (&Entry{Op: Write, Offset: to}).onto(f.stable)
		for at := from; at < to; at++ {
			if b := x.Data[at-x.Offset]; b == f.kernel[at] { // else it was written over
				f.stable[at] = b
			}
		}
	}
}

// names reports whether an entry only gives a file a name, where the file's sync keeps that.
func (l *Log) names(e *Entry, file uint64) bool {
	return l.Naming && file&DirBit == 0 && file != Root && len(e.Edits) == 1 && e.Edits[0].File == file
}

// rename brings names to the disk.
func (d *disk) rename(edits []Edit) {
	for _, x := range edits {
		set(d.names, x)
	}
	d.moved = true
}

func set(names map[Edit]uint64, x Edit) {
	key := Edit{Dir: x.Dir, Name: x.Name}
	if x.File == 0 {
		delete(names, key)
	} else {
		names[key] = x.File
	}
}

// lookUp follows a path; 0 is nothing.
func lookUp(name string, file func(Edit) uint64) uint64 {
	at := uint64(Root)
	for len(name) > 0 && at != 0 {
		var element string
		element, name, _ = strings.Cut(name, "/")
		at = file(Edit{Dir: at, Name: element})
	}
	return at
}

// strangers counts the files that are no target's: their names begin with a dot.
func strangers(names map[Edit]uint64) (n int) {
	for x := range names {
		if IsTemporary(x.Name) {
			n++
		}
	}
	return n
}

// IsTemporary reports whether a file of this name is one that a program should have removed.
func IsTemporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp")
}

// kept reports whether a pending entry is there in a state.
func (s *State) kept(rank int) bool {
	switch rank -= s.Keep; {
	case rank < 0:
		return true
	case rank < 64:
		return s.Mask>>rank&1 != 0
	}
	return s.Rest
}

// survivors says what is there in a state at this position.
func (d *disk) survivors(s *State, to *Survivors) {
	clear(to.N)
	clear(to.Disorder)
	clear(to.Half)
	to.TornTails, to.TornBytes = 0, 0
	if d.moved {
		d.moved = false
		for _, p := range d.byPath {
			p.file = lookUp(p.name, func(x Edit) uint64 { return d.names[x] })
		}
		d.strange = strangers(d.names)
	}
	file := func(p *named) uint64 { return p.file }
	to.Temporaries = d.strange
	if d.naming > 0 {
		d.nameState(s)
		to.Temporaries = strangers(d.scratch)
		file = func(p *named) uint64 { return lookUp(p.name, func(x Edit) uint64 { return d.scratch[x] }) }
	}
	for _, p := range d.byPath {
		if t := &d.targets[p.ids[0]]; t.Gather != nil {
			files := d.tree(s).Files
			to.Survey(d.targets, p.ids, t.Gather(files))
			if last := files[t.Path]; len(last) > 0 && last[len(last)-1] != '\n' {
				to.TornTails++
			}
			continue
		}
		n := file(p)
		if n == 0 {
			continue
		}
		f := d.file(n)
		upTo, behind, exact := d.reach(f, s)
		switch {
		case exact && !d.targets[p.ids[0]].Object:
			to.take(p.ids, f.parse, upTo)
			torn := upTo
			if n := below(f.parse.records, upTo); n > 0 {
				torn -= f.parse.records[n-1]
			}
			if behind || torn > 0 {
				to.TornTails++
				to.TornBytes += torn
			}
		case exact && upTo == int64(len(f.kernel)):
			to.Survey(d.targets, p.ids, slices.Clip(f.kernel)[:upTo:upTo])
		default:
			to.Survey(d.targets, p.ids, d.content(f, s))
		}
	}
}

// nameState makes the names of a state. A change of names is there only with those before it
// that are about the same file.
func (d *disk) nameState(s *State) {
	clear(d.scratch)
	for x, f := range d.names {
		d.scratch[x] = f
	}
	gone := map[uint64]bool{}
	for rank, i := range d.pending {
		e := &d.log.Entries[i]
		if e.Op != Name {
			continue
		}
		there := s.kept(rank)
		for _, x := range e.Edits {
			there = there && !gone[x.File]
		}
		for _, x := range e.Edits {
			if there {
				set(d.scratch, x)
			} else if x.File != 0 {
				gone[x.File] = true
			}
		}
	}
}

// reach returns up to which offset the file of a state equals the kernel's, and whether it has
// more bytes behind. It is not exact for a file that only its bytes tell of.
func (d *disk) reach(f *file, s *State) (upTo int64, behind, exact bool) {
	upTo = int64(len(f.kernel))
	if len(f.pending) == 0 {
		return upTo, false, !f.odd
	}
	if f.odd {
		return 0, false, false
	}
	first := len(d.pending)
	if s.Keep < len(d.pending) {
		first = d.pending[s.Keep]
	}
	missing := false
	for k := sort.SearchInts(f.pending, first); k < len(f.pending); k++ {
		rank := sort.SearchInts(d.pending, f.pending[k])
		e := &d.log.Entries[f.pending[k]]
		switch there := s.kept(rank); {
		case there && (s.Tear == 0 || rank != s.Keep):
			behind = behind || missing
		case there:
			at, some := d.torn(e, s.Tear)
			if at < int64(len(e.Data)) {
				upTo, missing, behind = e.Offset+at, true, some
			}
		case !missing:
			upTo, missing = e.Offset, true
		}
		if missing && (behind || rank > s.Keep+64) {
			return upTo, behind || s.Rest, true
		}
	}
	return upTo, behind, true
}

// torn returns how many bytes of a torn write are there at its beginning, and whether there are
// some behind the first missing sector.
func (d *disk) torn(e *Entry, mask uint64) (first int64, behind bool) {
	first = int64(len(e.Data))
	d.log.sectors(e, func(k int, from, to int64) {
		switch there := mask>>min(k, 63)&1 != 0; {
		case !there:
			first = min(first, from)
		case first < from:
			behind = true
		}
	})
	return first, behind
}

// sectors calls fn for each sector that a write touches, with its part of the data.
func (l *Log) sectors(e *Entry, fn func(k int, from, to int64)) {
	end := e.Offset + int64(len(e.Data))
	for k, at := 0, e.Offset; at < end; k++ {
		_, next := l.sector(at)
		next = min(end, next)
		fn(k, at-e.Offset, next-e.Offset)
		at = next
	}
}

// sector is the part of a file that reaches the disk as one with the byte at an offset.
func (l *Log) sector(at int64) (from, to int64) {
	if l.Whole[0] <= at && at < l.Whole[1] {
		return l.Whole[0], l.Whole[1]
	}
	from = at / l.Sector * l.Sector
	return from, from + l.Sector
}

// content returns the bytes of a file in a state, which are good until the next call.
func (d *disk) content(f *file, s *State) []byte {
	d.flat = append(d.flat[:0], f.stable...)
	for _, i := range f.pending {
		rank := sort.SearchInts(d.pending, i)
		if !s.kept(rank) {
			continue
		}
		e := &d.log.Entries[i]
		if s.Tear == 0 || rank != s.Keep || e.Op != Write {
			d.flat = e.onto(d.flat)
			continue
		}
		d.log.sectors(e, func(k int, from, to int64) {
			if s.Tear>>min(k, 63)&1 != 0 {
				part := Entry{Op: Write, Offset: e.Offset + from, Data: e.Data[from:to]}
				d.flat = part.onto(d.flat)
			}
		})
	}
	if d.flat == nil {
		d.flat = []byte{}
	}
	return d.flat
}

// Pieces calls fn for the present parts of the pending writes in a state, in order.
func (l *Log) Pieces(pending []int, s *State, fn func(offset int64, data []byte)) {
	for rank, i := range pending {
		e := &l.Entries[i]
		switch {
		case !s.kept(rank):
		case s.Tear == 0 || rank != s.Keep:
			fn(e.Offset, e.Data)
		default:
			l.sectors(e, func(k int, from, to int64) {
				if s.Tear>>min(k, 63)&1 != 0 {
					fn(e.Offset+from, e.Data[from:to])
				}
			})
		}
	}
}

// DirBit is in the numbers of directories but [Root].
const DirBit = 1 << 62

// states calls fn for crash states at this position, up to most, each once.
func (d *disk) states(r *rand.Rand, most int, seen *[]State, fn func(*State)) {
	d.log.States(d.position, d.pending, r, most, seen, fn)
}

// fileOf is the file that an entry is about, or for a removal a number of its own.
func (l *Log) fileOf(entry int) uint64 {
	const removal = 1 << 63
	e := &l.Entries[entry]
	if e.Op != Name {
		return e.File
	}
	return cmp.Or(e.Edits[len(e.Edits)-1].File, removal|uint64(entry))
}

// namesIn are the changes of names among entries.
func (l *Log) namesIn(entries []int) (names []int) {
	for _, i := range entries {
		if l.Entries[i].Op == Name {
			names = append(names, i)
		}
	}
	return names
}

// States calls fn for crash states of the pending entries before a position, up to most, each once.
// With few pending entries these are all choices of whole ones.
func (l *Log) States(position int, pending []int, r *rand.Rand, most int, seen *[]State, fn func(*State)) {
	n := len(pending)
	*seen = (*seen)[:0]
	try := func(s State) {
		if s.Tear == 0 {
			for s.Keep < n && s.Mask&1 != 0 { // each state has one form
				s.Mask >>= 1
				s.Keep++
				if s.Rest && s.Keep+63 < n {
					s.Mask |= 1 << 63
				}
			}
		}
		if s.Rest && s.Keep+64 >= n {
			s.Rest = false
		}
		if left := n - s.Keep; left < 64 {
			s.Mask &= 1<<max(0, left) - 1
		}
		s.Position = position
		if len(*seen) < most && !slices.Contains(*seen, s) {
			*seen = append(*seen, s)
			fn(&s)
		}
	}
	plain := []State{{Crash: Process, Keep: n}, {Crash: Power}, {Crash: Power, Keep: n}}
	r.Shuffle(len(plain), func(i, j int) { plain[i], plain[j] = plain[j], plain[i] })
	for i, s := range plain {
		if n == 0 || 2*i < most { // of three states one is chosen by chance
			try(s)
		}
	}
	if n == 0 {
		return
	}
	if last := pending[n-1]; l.Entries[last].Op == Name && r.IntN(2) == 0 {
		// All bytes are there and the newest change of names, and no change before it that is about another file: what a missing sync of
		// names leaves.
		s := State{Crash: Power, Keep: max(0, n-64)}
		for rank, i := range pending[s.Keep:] {
			if l.Entries[i].Op != Name || l.fileOf(i) == l.fileOf(last) {
				s.Mask |= 1 << rank
			}
		}
		try(s)
	}
	for tries := 0; len(*seen) < most && tries < 2*most; tries++ {
		s := State{Crash: Power}
		switch r.IntN(5) {
		case 0: // a prefix
			s.Keep = r.IntN(n + 1)
		case 4: // of one file all is there, or its names, and nothing of the others, or the other way round. Bytes may all be there
			rest, bytes := r.IntN(2) == 0, r.IntN(2) == 0
			if r.IntN(2) == 0 {
				s.Keep = max(0, r.IntN(n)-r.IntN(64))
			}
			if first := slices.IndexFunc(pending, func(i int) bool { return l.Entries[i].Op == Name }); bytes && first >= 0 && r.IntN(2) == 0 {
				s.Keep = max(0, first-r.IntN(64)) // bytes that nobody syncs may be many before the names
			}
			window := pending[s.Keep:min(n, s.Keep+64)]
			among := window
			if bytes {
				if named := l.namesIn(window); len(named) > 0 {
					among = named
				}
			}
			file := l.fileOf(among[r.IntN(len(among))])
			for rank, i := range window {
				if there := (l.fileOf(i) == file) != rest; there || bytes && l.Entries[i].Op != Name {
					s.Mask |= 1 << rank
				}
			}
			s.Rest = rest || bytes
		case 1: // any choice
			s.Keep, s.Mask, s.Rest = max(0, r.IntN(n+1)-r.IntN(65)), r.Uint64(), r.IntN(2) == 0
		case 2: // one is missing
			s.Keep, s.Mask, s.Rest = r.IntN(n), ^uint64(1), true
		default: // the oldest are there, one is torn, and of the rest none, any or all
			s.Keep = r.IntN(n)
			e := &l.Entries[pending[s.Keep]]
			if e.Op != Write {
				continue
			}
			sectors := 0
			l.sectors(e, func(k int, _, _ int64) { sectors = min(k+1, 64) })
			if sectors < 2 {
				continue
			}
			all := ^uint64(0) >> (64 - sectors)
			if s.Tear = r.Uint64() & all; s.Tear == 0 || s.Tear == all {
				s.Tear = all >> (sectors - 1 - r.IntN(sectors-1))
			}
			if s.Tear == all {
				s.Tear &^= 1 << (bits.Len64(all) - 1)
			}
			s.Mask = []uint64{1, 1 | r.Uint64(), ^uint64(0)}[r.IntN(3)]
			s.Rest = s.Mask == ^uint64(0)
		}
		try(s)
	}
}
