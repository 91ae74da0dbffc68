package crash

import (
	"sync"
	"time"
)

// A NoteKind says what a program knows of a record.
type NoteKind uint8

// The kinds, each stronger than the one before.
const (
	Begun    NoteKind = iota + 1 // it is about to be written
	Accepted                     // the call that wrote it returned nil
	Flushed                      // acknowledged: the end of the process does not take it
	Durable                      // acknowledged: a power cut does not take it
	noteKinds
)

// A Note is an acknowledgement: of a stream's records below N, or of an object's version N.
// It is kept outside of the crashed process.
type Note struct {
	Kind  NoteKind
	ID    uint32
	N     uint64
	Bytes int64 `json:",omitempty"` // Accepted: the size of the record
	At    int64
}

// An Op is an Entry's operation.
type Op uint8

// The operations.
const (
	Write  Op = iota + 1 // bytes of a file
	Resize               // a new size of a file
	Name                 // names of directories, all together or not at all
	Flush                // earlier writes are on the disk
	Lose                 // a sync failed: what was done before to the file never gets there. In the log of a disk: it refused a write at Offset
	Noted                // an acknowledgement
	Killed               // the process was killed, and another one goes on with its files
)

// An Entry is one step that reached the disk, or an acknowledgement at that time.
type Entry struct {
	Op     Op
	File   uint64 `json:",omitempty"` // a file's or a directory's number; of a Flush, 0 is everything
	Offset int64  `json:",omitempty"` // Write; Resize: the new size
	Length int64  `json:",omitempty"` // of a Flush of a file: it covers writes in so many bytes from Offset on; 0 is all
	Data   []byte `json:",omitempty"` // Write
	Edits  []Edit `json:",omitempty"` // Name
	UpTo   int    `json:",omitempty"` // Flush, Lose: it covers the entries below this number
	At     int64  // in nanoseconds
	Note   *Note  `json:",omitempty"`
	// Left says what the process left, of a Killed in the log of a disk, from which only a mount could tell it.
	Left *Survivors `json:",omitempty"`
}

// An Edit gives a name of a directory to a file; 0 is none.
type Edit struct {
	Dir  uint64
	Name string
	File uint64
}

// Root is the number of the directory that paths begin in.
const Root = 1

// A Log has the steps that reached the disk and the acknowledgements, in order. Earlier files are
// entries too, with a Flush of everything, below Start. Any goroutine may add to it.
type Log struct {
	Workload string
	Policy   string
	Seed     uint64
	Sector   int64         // how many bytes reach the disk as one
	Whole    [2]int64      `json:",omitzero"` // from and to: these sectors reach the disk as one
	Start    int           // the first entry that a crash may come before
	Slack    time.Duration // the allowed excess of a bound by time: writes and syncs in flight
	Fake     bool          // the clock is exact, so that bounds by time are judged
	Again    bool          // of a second run on a crash state
	Naming   bool          `json:",omitempty"` // a sync of a file keeps a name that it was given, unless by a rename
	FS       string        `json:",omitempty"` // level power: what is mounted. The log is of its disk; of the model it is of files
	Size     int64         `json:",omitempty"` // of that disk
	Program  *Program      `json:",omitempty"` // level power: what wrote, if it was no workload
	Entries  []Entry
	// Links are symbolic links by their numbers. A link is a name: it has its target from the beginning, and the sync of its
	// directory keeps both.
	Links map[uint64]string `json:",omitempty"`

	mu sync.Mutex
}

// Add appends an entry and returns how many there are.
func (l *Log) Add(e Entry) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.At = time.Now().UnixNano()
	if e.Note != nil {
		e.Note.At = e.At
	}
	l.Entries = append(l.Entries, e)
	return len(l.Entries)
}

// Len returns how many entries there are: what a Flush that starts now covers.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.Entries)
}
