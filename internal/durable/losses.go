// Package durable makes many files durable together: a [Step] syncs their bytes, lets them
// get their names and syncs these. It decides when to sync a whole file system, and
// remembers which syncs of directories and file systems have failed in this process. It
// does not know what the files are.
package durable

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// NameSyncs is the syncs of directories and of whole file systems, and which of them failed. A
// failed one may have lost every name that came to the directory, or to the file system, since the
// last one that worked. The kernel reports that to one caller only. Later syncs succeed: of another
// descriptor, one opened before the failure, of another directory (docs/design/assumptions.md, A6).
// So all callers of such syncs share this knowledge, and a failure is counted before the next sync
// begins.
type NameSyncs struct {
	turns keyed.Queue // one sync at a time of each directory, and of each whole file system

	mu   sync.Mutex
	last int // how many have failed
	// Lost is the number of the last one that failed, of each directory and of each file system as a
	// whole. The latter has the key without an inode.
	Lost map[keyed.Key]int
	next map[keyed.Key]*nameSync // was asked for and has not begun
}

// A nameSync is one sync of a directory, for all callers that asked for it before it began.
type nameSync struct {
	over chan struct{}
	err  error // to be read when it is over
}

// KernelSyncs is those that this process makes of the kernel.
//
// Note: it is the only such state of the package. The kernel reports a failure to one Writer
// and to no other, so this knowledge is the process's. A handle to share it would have to be
// passed to each Create, and be forgotten there.
var KernelSyncs NameSyncs

// NameSyncsOf returns the record of a disk: the kernel's, or one of its own.
func NameSyncsOf(disk any) *NameSyncs {
	if _, ok := disk.(sys.Disk); ok {
		return &KernelSyncs
	}
	return &NameSyncs{}
}

// wholeOf is the key of a directory's whole file system.
func wholeOf(directory keyed.Key) keyed.Key { return keyed.Key{Device: directory.Device} }

// Now returns how many syncs have failed by now.
func (n *NameSyncs) Now() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// Losses returns the number of the last failed sync that may have lost names of a
// directory. A name that was given when it was less is lost, or was durable before.
func (n *NameSyncs) Losses(directory keyed.Key) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(n.Lost[directory], n.Lost[wholeOf(directory)])
}

// Fail counts a failed sync of a directory or of a whole file system. A failed sync of a file
// counts too if its name in the directory was not durable: ext2, and ext4 without a journal, sync
// the directory with a new file, and report that to no other descriptor.
func (n *NameSyncs) Fail(what keyed.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.Lost == nil {
		n.Lost = map[keyed.Key]int{}
	}
	n.last++
	n.Lost[what] = n.last
}

// InTurn makes a sync while no other of the same is under way.
func (n *NameSyncs) InTurn(what keyed.Key, sync func() error) error {
	var turn keyed.Ticket
	n.turns.Join(what, &turn)
	defer n.turns.Leave(&turn)
	n.turns.Await(context.Background(), &turn)
	return sync()
}

// Await returns when no sync of this is under way that began before: a failure is counted then.
func (n *NameSyncs) Await(what keyed.Key) {
	n.InTurn(what, func() error { return nil })
}

// Directory makes the names durable that a directory has by now, by sync. Callers that come
// while another waits for its turn share its sync and its error. LostSince says afterwards
// whether names were lost before.
func (n *NameSyncs) Directory(is keyed.Key, sync func() error) error {
	n.mu.Lock()
	s := n.next[is]
	first := s == nil
	if first {
		if n.next == nil {
			n.next = map[keyed.Key]*nameSync{}
		}
		s = &nameSync{over: make(chan struct{})}
		n.next[is] = s
	}
	n.mu.Unlock()
	if first {
		s.err = n.InTurn(is, func() error {
			n.mu.Lock()
			delete(n.next, is) // names that come now are not in it
			n.mu.Unlock()
			err := sync()
			if err != nil && err != ErrDirLost {
				n.Fail(is)
			}
			return err
		})
		n.Await(wholeOf(is))
		close(s.over)
	}
	<-s.over
	return s.err
}

// Whole makes a file system durable as a whole, by sync. To believe in the names of
// a directory then, await the syncs of that, and ask for its losses.
func (n *NameSyncs) Whole(device uint64, sync func() error) error {
	what := keyed.Key{Device: device}
	return n.InTurn(what, func() error {
		err := sync()
		if err != nil && err != errDeviceLost {
			n.Fail(what)
		}
		return err
	})
}

// LostSince returns ErrDirLost if a sync of the directory has failed after the one numbered since:
// names that it got after that one may be lost.
func (n *NameSyncs) LostSince(directory keyed.Key, since int) error {
	if n.Losses(directory) > since {
		return ErrDirLost
	}
	return nil
}

// Settled is LostSince after the file system was synced as a whole. A sync of the directory that
// began before may have lost names and not have counted it yet.
func (n *NameSyncs) Settled(directory keyed.Key, since int) error {
	n.Await(directory)
	return n.LostSince(directory, since)
}

var ErrDirLost = errors.New("another sync of the directory failed meanwhile")
