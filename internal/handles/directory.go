package handles

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Dir is an open directory, cached under its path.
type Dir struct {
	Handle
	Is     sys.Stat
	looked int64 // the last era in which its path led to it; guarded by handles.mu
	// SyncsAll: SyncAll is reliable there.
	SyncsAll bool
	// LacksJournal is the result of LacksJournal, if the policy syncs.
	LacksJournal bool
	// NamesOnly: it is open for the use of names, not to be read or synced.
	NamesOnly bool
	// made is the Stat of the first private file made in it; guarded by handles.mu.
	made sys.Stat

	syncLost bool // a sync by this descriptor has failed; guarded by handles.mu
}

// Key identifies the directory, under any path.
func (d *Dir) Key() keyed.Key { return keyed.Key{Device: d.Is.Device, Inode: d.Is.Inode} }

// MadeIn returns the Stat of a new private file in this directory, or the zero Stat if none was
// made yet.
func (h *Cache) MadeIn(d *Dir) sys.Stat {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return d.made
}

func (h *Cache) SetMadeIn(d *Dir, made sys.Stat) {
	h.Mu.Lock()
	d.made = made
	h.Mu.Unlock()
}

// UseDir returns the open directory of a path, in use until Rest. It looks up a directory of an
// earlier era again: the path may lead to another directory now.
func (h *Cache) UseDir(path string, era int64) (*Dir, error) {
	if d := h.findDir(path); d != nil {
		if h.stillThere(d, era) {
			return d, nil
		}
		h.ForgetDir(d)
		h.Rest(&d.Handle)
	}
	h.Reserve()
	d, err := openDir(h.disk, strings.Clone(path), h.Syncs)
	if err != nil {
		h.Release()
		return nil, err
	}
	d.Drop = func() { h.dropDir(d) }
	if h.Opened != nil {
		h.Opened(d.Path)
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.Stats.Misses++
	d.Users, d.looked = 1, era
	if other := h.Dirs[d.Path]; other != nil && !other.Gone { // another goroutine was faster: this one is used once
		d.Gone = true
	} else {
		h.Dirs[d.Path] = d
	}
	return d, nil
}

// openDir opens a directory. If it can't be read, and its names need not be synced, openDir opens
// it for the use of names only. A sync needs a descriptor opened for reading.
func openDir(disk vfs.Disk, path string, syncs bool) (*Dir, error) {
	name, err := sys.NewName(path)
	if err != nil {
		return nil, err
	}
	fd, err := disk.OpenDir(name)
	namesOnly := false
	if errors.Is(err, fs.ErrPermission) {
		if forNames, e := disk.OpenForNames(name); e == nil && syncs {
			disk.Close(forNames)
			err = Unreadable(path, err)
		} else if e == nil {
			fd, err, namesOnly = forNames, nil, true
		}
	}
	if err != nil {
		return nil, err
	}
	is, err := disk.StatFD(fd)
	if err != nil {
		disk.Close(fd)
		return nil, err
	}
	return &Dir{
		Handle: Handle{Fd: fd, Path: path}, Is: is, NamesOnly: namesOnly,
		SyncsAll: vfs.SyncsAll(disk, fd), LacksJournal: syncs && vfs.LacksJournal(disk, fd),
	}, nil
}

// Unreadable returns the error of a sync of a directory that is writable but not readable.
func Unreadable(path string, err error) error {
	return fmt.Errorf("the names in %s can't be synced without permission to read it; sync=never does without: %w", path, err)
}

func (h *Cache) findDir(path string) *Dir {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	d := h.Dirs[path]
	if d == nil || d.Gone {
		return nil
	}
	h.UseLocked(&d.Handle)
	return d
}

// stillThere reports whether the path still leads to the directory in this era, and new files still
// get the same group.
func (h *Cache) stillThere(d *Dir, era int64) bool {
	if h.hit(d, era) {
		return true
	}
	name, _ := sys.NewName(d.Path)
	is, err := h.disk.StatPath(name)
	if err != nil || is.Device != d.Is.Device || is.Inode != d.Is.Inode || is.Links == 0 ||
		is.Mode != d.Is.Mode || is.GID != d.Is.GID {
		return false
	}
	h.Mu.Lock()
	d.looked = max(d.looked, era)
	h.Mu.Unlock()
	return h.hit(d, era)
}

// hit counts a use of a cached directory, if it was looked up in this era.
func (h *Cache) hit(d *Dir, era int64) bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if d.looked < era {
		return false
	}
	h.Stats.Hits++
	return true
}

// ForgetDir removes a directory from the cache.
func (h *Cache) ForgetDir(d *Dir) {
	h.Mu.Lock()
	h.forgetDirLocked(d)
	h.Mu.Unlock()
}

func (h *Cache) forgetDirLocked(d *Dir) {
	d.Gone = true
	if h.Dirs[d.Path] == d {
		delete(h.Dirs, d.Path)
	}
}

// dropDir closes an unused directory.
func (h *Cache) dropDir(d *Dir) {
	h.Mu.Lock()
	h.forgetDirLocked(d)
	h.Mu.Unlock()
	h.disk.Close(d.Fd) // nothing was written to it
	h.Release()
}

// Lost records that a sync of the directory failed. Its descriptor is not used again.
func (h *Cache) Lost(d *Dir) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	d.syncLost = true
	h.forgetDirLocked(d)
}

// IsLost reports whether a sync by this descriptor has failed.
func (h *Cache) IsLost(d *Dir) bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return d.syncLost
}
