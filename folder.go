package holdfast

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A folder is an open folder, kept by handles under its path.
type folder struct {
	handle
	path   string
	is     sys.Stat
	looked int64 // the era in which it was last the folder that its path names; guarded by handles.mu
	// syncsAll says that disk.SyncAll can be relied on there.
	syncsAll bool
	// made is how the last temporary file was found that was made there with the permissions asked; guarded by handles.mu.
	made  sys.Stat
	asked uint32

	syncLost bool // a sync by this descriptor failed; guarded by the turns of Files.folderSyncs
	// next is the sync by this descriptor that was asked for and has not begun, or nil;
	// after a failure it stays, and all who ask are told of it. Guarded by handles.mu.
	next *folderSync
}

// A folderSync is one sync of a folder, for all who asked for it before it began.
type folderSync struct {
	over chan struct{}
	err  error // to be read when it is over
}

// nextSync returns the next sync of a folder, and whether the caller is to do it.
func (h *handles) nextSync(d *folder) (s *folderSync, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.next == nil {
		d.next = &folderSync{over: make(chan struct{})}
		first = true
	}
	return d.next, first
}

// beginSync is told that the next sync begins: names that come now are not in it.
func (h *handles) beginSync(d *folder) {
	h.mu.Lock()
	d.next = nil
	h.mu.Unlock()
}

// key says which folder it is, however it is named.
func (d *folder) key() turnKey { return turnKey{device: d.is.Device, inode: d.is.Inode} }

// madeIn returns how a file is found that is made in this folder with these
// permissions, or the zero Stat if none was made yet.
func (h *handles) madeIn(d *folder, asked uint32) sys.Stat {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.asked != asked {
		return sys.Stat{}
	}
	return d.made
}

func (h *handles) setMadeIn(d *folder, asked uint32, made sys.Stat) {
	h.mu.Lock()
	d.asked, d.made = asked, made
	h.mu.Unlock()
}

// splitPath takes a path apart into its folder, "." if it names none, and its last
// element, which is empty where the path names a folder.
func splitPath(path string) (folder, base string) {
	volume := len(filepath.VolumeName(path)) // 0 but on Windows
	i := strings.LastIndexByte(path, '/')
	if os.PathSeparator != '/' {
		i = max(i, strings.LastIndexByte(path, os.PathSeparator))
	}
	switch {
	case i < volume && volume > 0: // of the working folder there
		return path[:volume], path[volume:]
	case i < 0:
		return ".", path
	case i == volume:
		return path[:i+1], path[i+1:]
	}
	return path[:i], path[i+1:]
}

// useFolder returns the open folder of this path; it is in use until rest. A
// folder that was kept from an earlier era is looked up by its path again, in
// case that it was moved and another is there.
func (h *handles) useFolder(path string, era int64) (*folder, error) {
	if d := h.findFolder(path); d != nil {
		if h.stillThere(d, era) {
			return d, nil
		}
		h.forgetFolder(d)
		h.rest(&d.handle)
	}
	h.reserve()
	d, err := openFolder(h.disk, strings.Clone(path))
	if err != nil {
		h.release()
		return nil, err
	}
	d.drop = func() { h.dropFolder(d) }
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stats.misses++
	d.users, d.looked = 1, era
	if other := h.folders[d.path]; other != nil && !other.gone { // somebody was faster: this one serves once
		d.gone = true
	} else {
		h.folders[d.path] = d
	}
	return d, nil
}

func openFolder(disk disk, path string) (*folder, error) {
	name, err := sys.NewName(path)
	if err != nil {
		return nil, err
	}
	fd, err := disk.OpenFolder(name)
	if err != nil {
		return nil, err
	}
	is, err := disk.StatFD(fd)
	if err != nil {
		disk.Close(fd)
		return nil, err
	}
	return &folder{handle: handle{fd: fd}, path: path, is: is, syncsAll: disk.SyncsAll(fd)}, nil
}

func (h *handles) findFolder(path string) *folder {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.folders[path]
	if d == nil || d.gone {
		return nil
	}
	h.useLocked(&d.handle)
	return d
}

// stillThere reports whether the folder's path names it in this era.
func (h *handles) stillThere(d *folder, era int64) bool {
	if h.hit(d, era) {
		return true
	}
	name, _ := sys.NewName(d.path)
	is, err := h.disk.StatPath(name)
	if err != nil || is.Device != d.is.Device || is.Inode != d.is.Inode || is.Links == 0 {
		return false
	}
	h.mu.Lock()
	d.looked = max(d.looked, era)
	h.mu.Unlock()
	return h.hit(d, era)
}

// hit counts that a kept folder serves again, if it was looked up in this era.
func (h *handles) hit(d *folder, era int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.looked < era {
		return false
	}
	h.stats.hits++
	return true
}

// forgetFolder lets nobody find the folder any more.
func (h *handles) forgetFolder(d *folder) {
	h.mu.Lock()
	h.forgetFolderLocked(d)
	h.mu.Unlock()
}

func (h *handles) forgetFolderLocked(d *folder) {
	d.gone = true
	if h.folders[d.path] == d {
		delete(h.folders, d.path)
	}
}

// dropFolder closes a folder that nobody uses.
func (h *handles) dropFolder(d *folder) {
	h.mu.Lock()
	h.forgetFolderLocked(d)
	h.mu.Unlock()
	h.disk.Close(d.fd) // nothing was written to it
	h.release()
}

// lost is told that a sync of the folder failed. Its descriptor is not used again.
func (h *handles) lost(d *folder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lostNames == nil {
		h.lostNames = map[turnKey]int{}
	}
	h.lostNames[d.key()]++
	h.forgetFolderLocked(d)
}

// losses returns how many syncs of the folder have failed.
func (h *handles) losses(d *folder) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lostNames[d.key()]
}

// lossesOf is losses for a folder that may be closed.
func (h *handles) lossesOf(folder turnKey) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lostNames[folder]
}
