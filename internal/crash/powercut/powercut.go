// Package powercut cuts the power of real file systems, and judges what they bring back.
//
// A workload runs on a file system whose disk a process of this package serves by FUSE. So each write of a block and
// each flush is in a log. A crash state is a prefix of that log, without some of the writes that no
// flush covers. It becomes an image in memory. The kernel mounts it, as after a real power cut, and
// replays its journal. Then the checker of package crash reads it.
//
// All of it happens in a process of its own, the room, with its own mounts and process numbers.
// When that process ends, and it ends with this one, the kernel removes all that it made:
// processes, mounts, loop devices, images. So a kill -9 leaves nothing.
//
// No wait is for ever. A step of a cell that takes too long has its disk aborted, and then fails
// alone. A room that says nothing for too long has all its disks aborted, and then is killed. The
// kernel aborts a disk whose server answers nothing.
//
// Where there is no root, or [Model] is chosen, the room is in a user namespace. There a tree of files
// is served and mounted, and the states of its log are explored in memory.
//
// Start with [Run]; [Process] is the room. [ShowRefusals] and [ShowSyncs] judge nothing: they
// show what file systems do.
package powercut

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// The first arguments of the processes that it starts with [crash.Options.Child].
const (
	roomArgument = "power-room"
	diskArgument = "power-disk"
	treeArgument = "power-tree"
	awayArgument = "power-away"
)

// An order is the room's task.
type order struct {
	Model     bool           `json:",omitempty"` // of the model alone, which takes no root
	Kinds     []string       `json:",omitempty"`
	Policies  []string       `json:",omitempty"`
	Workloads []string       `json:",omitempty"`
	Program   *crash.Program `json:",omitempty"` // in place of the workloads
	Show      string         `json:",omitempty"` // showRefusals or showSyncs, and judge nothing
	States    int
	Seconds   float64
	Seed      uint64
	Replay    *crash.Failure `json:",omitempty"` // judge this state, and nothing else
	Owner     string         // of its mounts
	Look      string         `json:",omitempty"` // and run this command where it is mounted
	Patience  time.Duration  // bounds what nothing should take long: then the disk is aborted
}

// An answer is the room's result. An empty one says that the room is alive.
type answer struct {
	Verdict   *crash.Verdict   `json:",omitempty"`
	Violation *crash.Violation `json:",omitempty"`
	Refusals  []Refusal        `json:",omitempty"`
	Syncs     []Sync           `json:",omitempty"`
	Err       string           `json:",omitempty"`
}

// The properties that an order can show.
const (
	showRefusals = "refusals"
	showSyncs    = "syncs"
)

// A Refusal is the fate of a record whose write the disk refused once, with EIO.
type Refusal struct {
	FS, Writes, First, Second string // how it was written, and its two syncs' errors
	Before, After             string // the bytes read before the file system was mounted again, and then
}

// A Sync is the writes that one call or few sent to the disk.
type Sync struct {
	FS, Calls            string
	Data, Other, Flushes int    // writes that have the program's bytes, other writes, flushes
	Bytes                int    // of all writes
	Order                string // of them all, such as "data 4KiB, flush"
	Times, Of            int    // how often it was this order
}

// Kinds are the file systems that can be chosen, in the order of the page.
var Kinds = []string{"ext4", "xfs", "btrfs", "ext3", "ext2", "ext4-journal", "ext4-writeback", "ext4-nojournal", "f2fs", "jfs", "nilfs2", "reiserfs", Model}

// Model is the one among them that is no file system: a model of the least that POSIX promises. It
// takes no root.
const Model = "posix"

func kindOf(name string) (volume.Kind, error) {
	if name == Model {
		return volume.Kind{Name: Model}, nil
	}
	kinds, err := volume.Parse(name)
	if err != nil {
		return volume.Kind{}, err
	}
	return kinds[0], nil
}
