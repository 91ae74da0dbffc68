package prove

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/policies"
)

// A Workload is a program that writes and says what it knows of it. To add one, write it in a
// file of its own, as a method of catalogue.
//
// Run is run again on what a crash has left: it reads that with its System, and goes on.
type Workload struct {
	Name    string
	About   string
	Control string // what it must show: correct, or the bug of a liar; "" is no control
	Files   bool   // it needs real files
	Cut     bool   // of a control: only a power cut shows it
	Failing bool   // of a liar: only a call that fails shows it
	// Attacked says that it is for level hostile, and for no other. InMemory says that of level memory.
	Attacked, InMemory bool
	// Mounted are paths at which files of another file system are mounted, at level memory. They are there from the start.
	Mounted []string
	// Survey says what is in the directory of the targets, where their files are no targets' records.
	Survey func(dir string) (*Survivors, error)
	// Cleans says that no temporary is left when a run has ended in order.
	Cleans bool
	// Tidy says that none is left by a run that was not killed, though its calls failed.
	Tidy bool
	// Slow is how long a real run pauses between its steps, where it soon has no more to do.
	Slow time.Duration
	// Policies are those that it is run under; nil is every one, and without a choice those of the generated cases.
	Policies []holdfast.Policy
	// Shape is that of its records: it is run under the policies that the generated cases have for it. "" is under those of all.
	Shape policies.Shape
	// Whole says that it writes whole files, which wait in no memory: of the policies that sync alike one is enough.
	Whole   bool
	Targets func(holdfast.Policy) []Target
	Loss    func(holdfast.Policy) holdfast.Loss // nil is Policy.Loss
	Run     func(*Run) error
}

// lossOf is what a workload may lose under a policy.
func (w *Workload) lossOf(p holdfast.Policy) holdfast.Loss {
	if w.Loss != nil {
		return w.Loss(p)
	}
	return p.Loss()
}

// A System is where a workload writes. Paths have slashes, and begin in the workload's directory.
type System interface {
	// ReadFile returns nil and no error if there is no such file.
	ReadFile(path string) ([]byte, error)
	// Append opens a file to append to, cut to a size. The cut and the name are durable: what is
	// written behind an end that a crash takes back is not behind it.
	Append(path string, size int64) (holdfast.File, error)
	// Set returns files under options, on this system.
	Set(files.Options) (*files.Set, error)
	// Path is a path as the files of a Set take it.
	Path(path string) string
	// Calls are those of a program without holdfast.
	Calls
}

// Calls are what a plain program does with whole files.
type Calls interface {
	// WriteFile makes a new file, and syncs it if sync says so.
	WriteFile(path string, data []byte, sync bool) error
	Rename(from, to string) error
	// SyncDir syncs the directory that files are in.
	SyncDir() error
}

// A Run is one run of a workload.
type Run struct {
	System
	Policy  holdfast.Policy
	Number  int // 0 is the first, 1 goes on after a crash
	Seed    uint64
	Records int                // each writer stops after so many, if more than 0
	Until   func() bool        // the run goes on while it is false
	Pause   func(r *rand.Rand) // between records
	Tell    func(n Note)       // keeps an acknowledgement
	Wrap    func(holdfast.File) holdfast.File
}

// Note keeps an acknowledgement.
func (r *Run) Note(kind NoteKind, id uint32, n uint64) { r.Tell(Note{Kind: kind, ID: id, N: n}) }

// more reports whether a writer that has made so many records makes another.
func (r *Run) more(made int) bool {
	return (r.Records == 0 || made < r.Records) && (r.Until == nil || !r.Until())
}

// open opens a file of streams behind its last whole record, as each program must that goes on
// after a crash. It returns how many records of each writer are there.
func (r *Run) open(path string, ids ...uint32) (holdfast.File, []uint64, error) {
	data, err := r.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	p := newParse()
	p.extend(data)
	if p.disorder >= 0 {
		return nil, nil, errors.New("the file's records are in disorder")
	}
	f, err := r.Append(path, p.end)
	if err != nil {
		return nil, nil, err
	}
	if r.Wrap != nil {
		f = r.Wrap(f)
	}
	var next []uint64
	for _, id := range ids {
		next = append(next, uint64(len(p.ends[id])))
	}
	return f, next, nil
}

// random returns the random numbers of one of the run's writers.
func (r *Run) random(id uint32) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed+uint64(r.Number)<<32, uint64(id)))
}

// A stream makes the records of one writer, and notes what becomes of them.
type stream struct {
	run  *Run
	id   uint32
	next uint64
	made int
	rand *rand.Rand
	buf  []byte
	ends []int64 // of a Writer: an offset behind each record that this run made
}

func (r *Run) stream(id uint32, next uint64) *stream {
	return &stream{run: r, id: id, next: next, rand: r.random(id)}
}

// record makes the next record, which is good until the one after it.
func (s *stream) record() []byte { return s.recordOf(HeaderSize + s.rand.IntN(200)) }

func (s *stream) recordOf(size int) []byte {
	s.run.Note(Begun, s.id, s.next+1)
	s.buf = Record{ID: s.id, N: s.next, At: time.Now().UnixNano(), Size: size}.Append(s.buf[:0])
	return s.buf
}

// shaped makes the next record in a size that a Writer treats as a shape says.
func (s *stream) shaped(shape policies.Shape) []byte {
	size := HeaderSize + s.rand.IntN(200)
	switch most := int(min(s.run.Policy.Buffer, 64*holdfast.KiB-1)); {
	case shape == policies.Large, shape == policies.Mixed && s.rand.IntN(3) == 0:
		size += most
	case most > 0:
		size = min(size, most)
	}
	return s.recordOf(size)
}

// accepted notes that the record was accepted, as durable as a policy makes it then.
func (s *stream) accepted(p holdfast.Policy) {
	s.next++
	s.made++
	s.run.Tell(Note{Kind: Accepted, ID: s.id, N: s.next, Bytes: int64(len(s.buf))})
	if p.Sync.Waits() {
		s.run.Note(Durable, s.id, s.next)
	}
	if s.run.Pause != nil {
		s.run.Pause(s.rand)
	}
}

// A catalogue is made when it is asked for first: most commands crash nothing.
type catalogue []*Workload

var workloads = sync.OnceValue(func() (all catalogue) {
	all.append()
	all.controls()
	all.copy()
	all.each()
	all.rotate()
	all.wal()
	all.whole()
	all.writer()
	all.enqueue()
	all.create()
	return all
})

// Workloads are all, controls included.
func Workloads() []*Workload { return workloads() }

// Find returns the workload of a name, or nil.
func Find(name string) *Workload {
	if i := slices.IndexFunc(workloads(), func(w *Workload) bool { return w.Name == name }); i >= 0 {
		return workloads()[i]
	}
	return nil
}

var pairs = sync.OnceValue(policies.Pairs)

// generated returns policies that the workload is run under where none was chosen, about count of them. Seeds in a row take
// all in turn.
func (w *Workload) generated(seed uint64, count int) (chosen []holdfast.Policy) {
	if w.Policies != nil {
		return w.Policies
	}
	var all []holdfast.Policy
	for _, c := range pairs() {
		known := slices.ContainsFunc(all, func(p holdfast.Policy) bool { return p == c.Policy || w.Whole && p.Sync == c.Policy.Sync })
		if !known && (w.Shape == "" || w.Shape == c.Shape) {
			all = append(all, c.Policy)
		}
	}
	parts := (len(all) + count - 1) / count
	for i := int(seed % uint64(parts)); i < len(all); i += parts {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// streams are the targets of so many writers to one file.
func streamTargets(path string, writers int) func(holdfast.Policy) []Target {
	return func(holdfast.Policy) (all []Target) {
		for id := range writers {
			all = append(all, Target{ID: uint32(id), Path: path})
		}
		return all
	}
}
