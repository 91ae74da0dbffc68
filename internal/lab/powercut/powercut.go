// Package powercut cuts the power of real file systems, and judges what they bring back.
//
// A workload runs on a file system whose disk is served by package fuselog, so that each write of
// a block and each flush is in a log. A crash state is a prefix of that log, without some of what
// no flush covers. It becomes an image in memory. The kernel mounts it, as after a real power
// cut, and replays its journal. Then the checker of package prove reads it.
//
// All of it happens in a process of its own, the room, with its own mounts and process numbers.
// When that process ends, and it ends with this one, the kernel removes all that it made:
// processes, mounts, loop devices, images. So a kill -9 leaves nothing.
//
// Start with [Run]; [Process] is the room.
package powercut

import (
	"github.com/holdfast-go/holdfast/internal/lab/prove"
	"github.com/holdfast-go/holdfast/internal/lab/volume"
)

// The first arguments of the processes that it starts with [prove.Options.Child].
const (
	roomArgument = "power-room"
	diskArgument = "power-disk"
)

// An order is what the room is to do.
type order struct {
	Kinds     []string `json:",omitempty"`
	Policies  []string `json:",omitempty"`
	Workloads []string `json:",omitempty"`
	States    int
	Seconds   float64
	Seed      uint64
	Replay    *prove.Failure `json:",omitempty"` // judge this state, and nothing else
	Owner     string         // of its mounts
	Look      string         `json:",omitempty"` // and run this command where it is mounted
}

// An answer is what it has found.
type answer struct {
	Verdict   *prove.Verdict   `json:",omitempty"`
	Violation *prove.Violation `json:",omitempty"`
	Err       string           `json:",omitempty"`
}

// Kinds are the file systems that can be chosen, in the order of the page.
var Kinds = []string{"ext4", "xfs", "btrfs", "ext3", "ext2", "ext4-journal", "ext4-writeback", "ext4-nojournal", "f2fs", "jfs"}

func kindOf(name string) (volume.Kind, error) {
	kinds, err := volume.Parse(name)
	if err != nil {
		return volume.Kind{}, err
	}
	return kinds[0], nil
}
