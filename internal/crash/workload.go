package crash

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/policies"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Workload is a program that writes and says what it knows of it.
//
// Run is run again on a crash's files: it reads them with its System, and goes on.
type Workload struct {
	Name    string
	About   string
	Control string // what it must show: correct, or the bug of a liar; "" is no control
	Files   bool   // it needs real files
	Cut     bool   // of a control: only a power cut shows it
	Failing bool   // of a liar: only a call that fails shows it
	// Below says that at level power a correct control runs on disks that lie, too.
	Below bool
	// Journal says of a liar that it is none where the commit of a journal brings all bytes before it to the disk.
	Journal bool
	// Parts reports whether a call that fails may leave a part of a record, behind which other goroutines write. A reader of
	// records in a row does not find those: then no write fails behind a short one.
	Parts func(holdfast.Policy) bool
	// Attacked says that it is for level hostile, and for no other. InMemory says the same for level memory. Reopens says that it is not
	// for level hostile: what it has written in one directory it looks for in another.
	Attacked, InMemory, Reopens bool
	// Outlived says that newer records may outlive ones that a killed process left and nobody had acknowledged, so that no power cut
	// behind a kill is judged, at level memory.
	Outlived bool
	// Mounted are paths at which files of another file system are mounted, at level memory. They are there from the start.
	Mounted []string
	// Dirs are directories that are there from the start, at level memory. Elsewhere the workload makes them.
	Dirs []string
	// Survey says what is in the directory of the targets, where their files are no targets' records.
	Survey func(dir string) (*Survivors, error)
	// Scan is Survey of a state of a disk in memory.
	Scan func(Tree) (*Survivors, error)
	// Cleans says that no temporary is left when a run has ended in order.
	Cleans bool
	// Tidy says that none is left by a run that was not killed, though its calls failed.
	Tidy bool
	// Processes is how many of its processes write in the directory at a time, at level kill, which alone runs more than one.
	Processes int
	// Slow is how long a real run pauses between its steps, where it soon has no more to do.
	Slow time.Duration
	// Policies are the policies it is run under; nil is every one, and without a choice the generated cases' policies.
	Policies []holdfast.Policy
	// Also is a policy that it is run under in each run where none was chosen, beside the generated cases' policies.
	Also []holdfast.Policy
	// Periods are the same at level memory alone, in fake time.
	Periods []holdfast.Policy
	// Shape is its records' shape: it is run under the policies that the generated cases have for it. "" is under all of them.
	Shape policies.Shape
	// Whole says that it writes whole files, which wait in no memory: of the policies that sync alike one is enough.
	Whole   bool
	Targets func(holdfast.Policy) []Target
	Loss    func(holdfast.Policy) holdfast.Loss // nil is Policy.Loss
	Run     func(*Run) error
}

// lossOf is a workload's allowed loss under a policy.
func (w *Workload) lossOf(p holdfast.Policy) holdfast.Loss {
	if w.Loss != nil {
		return w.Loss(p)
	}
	return p.Loss()
}

// IsLiar reports whether a workload is a control that must be caught.
func (w *Workload) IsLiar() bool { return w.Control != "" && w.Control != "correct" }

// A System is where a workload writes. Paths have slashes, and begin in the workload's directory.
type System interface {
	// ReadFile returns nil and no error if there is no such file.
	ReadFile(path string) ([]byte, error)
	// Append opens a file to append to, cut to a size. The remaining bytes and the name are durable, so a
	// crash can't bring back the cut end in front of new bytes.
	Append(path string, size int64) (holdfast.File, error)
	// Path is a path for other calls: of the operating system, or of Disk.
	Path(path string) string
	// Files returns the bytes of the files of a directory by their names, without directories below.
	Files(dir string) (map[string][]byte, error)
	// Disk returns the disk in memory, or nil where the files are real.
	Disk() vfs.ReadDisk
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
	Process int // the number of this process among those running at the same time
	Seed    uint64
	Fake    bool               // in fake time
	Records int                // each writer stops after this number, if more than 0
	Until   func() bool        // the run goes on while it is false
	Pause   func(r *rand.Rand) // between records
	Tell    func(n Note)       // keeps an acknowledgement
	Wrap    func(holdfast.File) holdfast.File
}

// Note keeps an acknowledgement.
func (r *Run) Note(kind NoteKind, id uint32, n uint64) { r.Tell(Note{Kind: kind, ID: id, N: n}) }

// More reports whether a writer that has made n records makes another.
func (r *Run) More(made int) bool {
	return (r.Records == 0 || made < r.Records) && (r.Until == nil || !r.Until())
}

// Open opens a file of streams behind its last whole record, as each program must that goes on
// after a crash. It returns how many records of each writer are there.
func (r *Run) Open(path string, ids ...uint32) (holdfast.File, []uint64, error) {
	data, err := r.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	end, count, ordered := Records(data)
	if !ordered {
		return nil, nil, errors.New("the file's records are in disorder")
	}
	f, err := r.Append(path, end)
	if err != nil {
		return nil, nil, err
	}
	if r.Wrap != nil {
		f = r.Wrap(f)
	}
	var next []uint64
	for _, id := range ids {
		next = append(next, count(id))
	}
	return f, next, nil
}

// Random returns the random numbers of one of the run's writers.
func (r *Run) Random(id uint32) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed+uint64(r.Number)<<32, uint64(id)))
}

// Find returns the workload of a name, or nil.
func Find(workloads []*Workload, name string) *Workload {
	if i := slices.IndexFunc(workloads, func(w *Workload) bool { return w.Name == name }); i >= 0 {
		return workloads[i]
	}
	return nil
}

// generated returns policies of cases that the workload is run under where none was chosen, about count of them. Seeds
// in a row take all in turn.
func (w *Workload) generated(cases []policies.Case, seed uint64, count int) (chosen []holdfast.Policy) {
	if w.Policies != nil {
		return w.Policies
	}
	var all []holdfast.Policy
	for _, c := range cases {
		known := slices.ContainsFunc(all, func(p holdfast.Policy) bool { return p == c.Policy || w.Whole && p.Sync == c.Policy.Sync })
		if !known && (w.Shape == "" || w.Shape == c.Shape) {
			all = append(all, c.Policy)
		}
	}
	parts := (len(all) + count - 1) / count
	for i := int(seed % uint64(parts)); i < len(all); i += parts {
		chosen = append(chosen, all[i])
	}
	return append(chosen, w.Also...)
}
