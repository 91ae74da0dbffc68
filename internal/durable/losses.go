// Package durable makes many files durable together: a [Step] syncs their bytes, lets them get
// their names and syncs the names. It decides when to sync a whole file system, and records failed
// syncs of directories and file systems in this process. It does not know the contents of the
// files.
package durable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// NameSyncs makes the syncs of directories and of whole file systems, and records the failed ones.
// A failed sync may have lost every name that the directory, or the file system, got since the last
// successful one. The kernel reports that to one caller only. Later syncs succeed: by another
// descriptor, by one opened before the failure, of another directory (docs/design/assumptions.md,
// A6). So all callers of such syncs share this record, and a failure is counted before the next
// sync begins.
type NameSyncs struct {
	turns keyed.Queue // one sync at a time of each directory and each whole file system

	mu   sync.Mutex
	last int // number of failed syncs
	// Lost has the number of the last failed sync of each directory and of each whole file system,
	// whose key has no inode.
	Lost map[keyed.Key]int
	next map[keyed.Key]*nameSync // syncs that were requested and have not begun
}

// A nameSync is one sync of a directory, for all callers that requested it before it began.
type nameSync struct {
	over chan struct{}
	err  error // valid after over is closed
}

// KernelSyncs is the record for [sys.Disk].
//
// Note: it is the only global state of the package. The kernel reports a failure to one Writer and
// to no other, so the record belongs to the process. A handle to share it would have to be passed
// to each Create, and callers would forget it.
var KernelSyncs NameSyncs

// NameSyncsOf returns the record of a disk: the kernel's, or one that the disk has, or a new one.
func NameSyncsOf(disk any) *NameSyncs {
	switch d := disk.(type) {
	case sys.Disk:
		return &KernelSyncs
	case interface{ NameSyncs() *NameSyncs }:
		return d.NameSyncs()
	}
	return &NameSyncs{}
}

// wholeOf returns the key of a directory's file system.
func wholeOf(directory keyed.Key) keyed.Key { return keyed.Key{Device: directory.Device} }

// Now returns the number of failed syncs.
func (n *NameSyncs) Now() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// Losses returns the number of the last failed sync that may have lost names of a directory. A name
// made when Now was less is lost, unless it was durable before.
func (n *NameSyncs) Losses(directory keyed.Key) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(n.Lost[directory], n.Lost[wholeOf(directory)])
}

// Fail counts a failed sync of a directory or of a whole file system. A failed sync of a file
// counts too if its directory entry was not durable: ext2, and ext4 without a journal, sync the
// directory with a new file, and report its failure to no other descriptor.
func (n *NameSyncs) Fail(key keyed.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.Lost == nil {
		n.Lost = map[keyed.Key]int{}
	}
	n.last++
	n.Lost[key] = n.last
}

// InTurn calls sync while no other sync of the key runs.
func (n *NameSyncs) InTurn(key keyed.Key, sync func() error) error {
	var turn keyed.Ticket
	n.turns.Join(key, &turn)
	defer n.turns.Leave(&turn)
	n.turns.Await(context.Background(), &turn)
	return sync()
}

// Await waits for the sync of the key in flight, if there is one: then its failure is counted.
func (n *NameSyncs) Await(key keyed.Key) {
	n.InTurn(key, func() error { return nil })
}

// Directory makes the names in a directory durable, by sync. Callers that come while another waits
// for its turn share its sync and its error. Then LostSince tells whether earlier names were lost.
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
			delete(n.next, is) // this sync does not cover later names
			n.mu.Unlock()
			err := sync()
			switch {
			case RefusesDirs(err):
				err = &RefusedError{err}
			case err != nil && err != ErrDirLost:
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

// Whole makes a whole file system durable, by sync. Before the names of a directory count as
// durable, await the syncs of the directory, and ask for its losses: see Settled.
func (n *NameSyncs) Whole(device uint64, sync func() error) error {
	key := keyed.Key{Device: device}
	return n.InTurn(key, func() error {
		err := sync()
		if err != nil && err != errDeviceLost {
			n.Fail(key)
		}
		return err
	})
}

// LostSince returns ErrDirLost if the directory's number of the last failed sync is above since:
// names made after Now was since may be lost.
func (n *NameSyncs) LostSince(directory keyed.Key, since int) error {
	if n.Losses(directory) > since {
		return ErrDirLost
	}
	return nil
}

// Settled is LostSince after a sync of the whole file system. A sync of the directory in flight may
// have lost names and not be counted yet: Settled waits for it.
func (n *NameSyncs) Settled(directory keyed.Key, since int) error {
	n.Await(directory)
	return n.LostSince(directory, since)
}

// A RefusedError says that a file system syncs no directories. No name is lost by that.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("this file system syncs no directory (%v), so whether the name is durable is its server's affair", e.Err)
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// RefusesDirs reports whether an error of a directory's sync says that the file system has none:
// SMB, vboxsf and old FUSE servers answer EINVAL, ENOTSUP or ENOSYS.
func RefusesDirs(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}

var ErrDirLost = errors.New("another sync of the directory failed")
