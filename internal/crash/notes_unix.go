//go:build unix

package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sys"
	"golang.org/x/sys/unix"
)

// SharedNotes are notes in a mapped file: what a process has put there stays when it is killed.
type SharedNotes struct {
	file  *os.File
	next  *atomic.Uint64 // how many were begun
	end   *atomic.Uint64 // not 0: the process is to end in order when it has made as many notes, less one
	slots []slot
	data  []byte
}

// A slot is a note. Its kind is stored last, so that half a note is none.
type slot struct {
	what         atomic.Uint64 // the kind and the ID
	n, bytes, at uint64
}

const mostNotes = 1 << 19

// NewNotes returns notes that no process has yet. They are in memory: a full disk must not stop them.
func NewNotes() (*SharedNotes, error) {
	f, err := sys.MemoryFile("holdfast-notes")
	if err != nil {
		return nil, err
	}
	err = f.Truncate(int64(unsafe.Sizeof([mostNotes + 1]slot{})))
	if err == nil {
		var s *SharedNotes
		if s, err = NotesIn(f); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, f.Close())
}

// NotesIn maps the file of notes that another process has made, and keeps it.
func NotesIn(f *os.File) (*SharedNotes, error) {
	const size = int(unsafe.Sizeof([mostNotes + 1]slot{}))
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if info.Size() != int64(size) { // a store behind the end would end the process
		return nil, fmt.Errorf("%s has %d bytes, and notes take %d", f.Name(), info.Size(), size)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	slots := unsafe.Slice((*slot)(unsafe.Pointer(unsafe.SliceData(data))), mostNotes+1)
	head := (*[2]atomic.Uint64)(unsafe.Pointer(&slots[0]))
	return &SharedNotes{f, &head[0], &head[1], slots[1:], data}, nil
}

// Give makes a command that runs [Child] start with the notes.
func (s *SharedNotes) Give(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{s.file} }

// File is where the notes are.
func (s *SharedNotes) File() *os.File { return s.file }

func (s *SharedNotes) tell(n Note) {
	i := s.next.Add(1) - 1
	if i >= mostNotes {
		return // ended says so
	}
	x := &s.slots[i]
	x.n, x.bytes, x.at = n.N, uint64(n.Bytes), uint64(time.Now().UnixNano())
	x.what.Store(uint64(n.Kind)<<32 | uint64(n.ID))
}

// ended leaves room for the notes of writers that are still under way.
func (s *SharedNotes) ended() bool {
	made, end := s.next.Load(), s.end.Load()
	return end != 0 && made+1 >= end || made > mostNotes-1000
}

// All are the notes. One that was not finished has no kind.
func (s *SharedNotes) All() (all []Note) {
	for i := range s.slots[:min(s.next.Load(), mostNotes)] {
		x := &s.slots[i]
		var n Note
		if what := x.what.Load(); what != 0 {
			n = Note{NoteKind(what >> 32), uint32(what), x.n, int64(x.bytes), int64(x.at)}
		}
		all = append(all, n)
	}
	return all
}

// Begun is how many notes there are, also unfinished ones.
func (s *SharedNotes) Begun() uint64 { return s.next.Load() }

// End asks the process to end in order when it has made n notes; 0 is now.
func (s *SharedNotes) End(made int) { s.end.Store(uint64(made) + 1) }

// Close unmaps them.
func (s *SharedNotes) Close() error { return errors.Join(unix.Munmap(s.data), s.file.Close()) }

// Child is the process that is killed. It runs one of these workloads in a directory, and keeps its notes in
// memory that it shares with its parent: see [SharedNotes.Give].
func Child(args []string, workloads []*Workload) error {
	if len(args) == 5 {
		args = append(slices.Clip(args), "0")
	}
	if len(args) != 6 {
		return fmt.Errorf("%d arguments, and a child takes 5 or 6", len(args))
	}
	w := Find(workloads, args[0])
	p, err := holdfast.ParsePolicy(args[1])
	seed, seedErr := strconv.ParseUint(args[3], 10, 64)
	number, numberErr := strconv.Atoi(args[4])
	process, processErr := strconv.Atoi(args[5])
	if err := errors.Join(err, seedErr, numberErr, processErr); err != nil {
		return err
	}
	if w == nil {
		return fmt.Errorf("there is no workload %q", args[0])
	}
	notes, err := NotesIn(os.NewFile(3, "notes"))
	if err != nil {
		return err
	}
	slow := w.Slow
	if w.Control == "" && p.Sync.Every > 0 {
		slow = 20 * time.Microsecond
	}
	pause := func(*rand.Rand) { time.Sleep(slow) }
	return w.Run(&Run{System: real{args[2]}, Policy: p, Number: number, Process: process, Seed: seed, Until: notes.ended, Pause: pause, Tell: notes.tell})
}
