//go:build linux

// Package foreign is a disk for tests that answers as exFAT, NTFS, SMB, FUSE and network mounts do,
// where ext4 never would: it takes two names for one, and refuses calls that are not needed to
// keep bytes.
package foreign

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Disk is this machine's disk, except for paths below Root.
type Disk struct {
	sys.Disk
	Root  string // an absolute path without links
	Folds bool   // names that differ in case are one, spelled as the first was

	KeepsModes   bool // Chmod succeeds, and changes nothing, as on NTFS
	FollowsLinks bool // the calls on a symbolic link itself find nothing, as on sshfs

	// Refuses has the error of each call that is refused below Root, by the method's name; one for
	// names in a directory has its plain name. SyncDir is Sync of a directory.
	Refuses map[string]error

	mu      sync.Mutex
	refused map[string]int
}

// newSuffix is of the name that files.Replace gives a new file that can't take the old one's place.
const newSuffix = ".holdfast-new"

// Refused returns how often a call was refused.
func (d *Disk) Refused(call string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused[call]
}

// FoldsNames is vfs.Folder's.
func (d *Disk) FoldsNames(dir int) bool { return d.Folds && d.below(dir) }

// below reports whether an open file or directory is below the root.
func (d *Disk) below(fd int) bool {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return err == nil && strings.HasPrefix(path+"/", d.Root+"/")
}

func (d *Disk) refuses(fd int, call string) error {
	err := d.Refuses[call]
	if err == nil || fd >= 0 && !d.below(fd) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused == nil {
		d.refused = map[string]int{}
	}
	d.refused[call]++
	return err
}

// as returns the name that a directory has for a name.
func (d *Disk) as(dir int, name sys.Name) sys.Name {
	if !d.Folds || dir == sys.AtCwd || !d.below(dir) {
		return name
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", dir))
	if err != nil {
		return name
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, has := range names {
		if strings.EqualFold(has, name.String()) {
			return sys.Name(has + "\x00")
		}
	}
	return name
}

// follows reports whether a call on a name is one on a link.
func (d *Disk) follows(dir int, name sys.Name) bool {
	is, err := d.Stat(dir, name)
	return d.FollowsLinks && d.below(dir) && err == nil && is.Mode&syscall.S_IFMT == syscall.S_IFLNK
}

// The calls that take a name.

func (d *Disk) OpenDirIn(dir int, name sys.Name) (int, error) {
	return d.Disk.OpenDirIn(dir, d.as(dir, name))
}

func (d *Disk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	return d.Disk.OpenFile(dir, d.as(dir, name), flag, perm)
}

func (d *Disk) OpenSource(dir int, name sys.Name) (int, error) {
	return d.Disk.OpenSource(dir, d.as(dir, name))
}

func (d *Disk) Stat(dir int, name sys.Name) (sys.Stat, error) {
	return d.Disk.Stat(dir, d.as(dir, name))
}

func (d *Disk) Rename(dir int, from, to sys.Name) error {
	if err := d.refuses(dir, "Rename"); err != nil {
		return err
	}
	if !strings.HasSuffix(to.String(), newSuffix) { // nothing is mounted on that
		if err := d.refuses(dir, "RenameOver"); err != nil {
			return err
		}
	}
	return d.Disk.Rename(dir, d.as(dir, from), d.as(dir, to))
}

func (d *Disk) RenameNew(dir int, from, to sys.Name) error {
	if err := d.refuses(dir, "RenameNew"); err != nil {
		return err
	}
	return d.Disk.RenameNew(dir, d.as(dir, from), d.as(dir, to))
}

func (d *Disk) Remove(dir int, name sys.Name) error { return d.Disk.Remove(dir, d.as(dir, name)) }

func (d *Disk) MkdirIn(dir int, name sys.Name, perm uint32) error {
	return d.Disk.MkdirIn(dir, d.as(dir, name), perm)
}

func (d *Disk) SymlinkIn(target sys.Name, dir int, name sys.Name) error {
	if err := d.refuses(dir, "Symlink"); err != nil {
		return err
	}
	return d.Disk.SymlinkIn(target, dir, d.as(dir, name))
}

func (d *Disk) LinkIn(fromDir int, from sys.Name, toDir int, to sys.Name) error {
	if err := d.refuses(toDir, "Link"); err != nil {
		return err
	}
	return d.Disk.LinkIn(fromDir, d.as(fromDir, from), toDir, d.as(toDir, to))
}

func (d *Disk) ChownIn(dir int, name sys.Name, uid, gid uint32) error {
	if err := d.refuses(dir, "Chown"); err != nil {
		return err
	}
	if d.follows(dir, name) {
		return syscall.ENOENT
	}
	return d.Disk.ChownIn(dir, d.as(dir, name), uid, gid)
}

func (d *Disk) SetTimesIn(dir int, name sys.Name, accessed, modified time.Time) error {
	if err := d.refuses(dir, "SetTimes"); err != nil {
		return err
	}
	if d.follows(dir, name) {
		return syscall.ENOENT
	}
	return d.Disk.SetTimesIn(dir, d.as(dir, name), accessed, modified)
}

func (d *Disk) AttributesIn(dir int, name sys.Name) ([]string, error) {
	if err := d.refuses(dir, "Attributes"); err != nil {
		return nil, err
	}
	return d.Disk.AttributesIn(dir, d.as(dir, name))
}

func (d *Disk) AttributeIn(dir int, name sys.Name, attribute string) ([]byte, error) {
	if err := d.refuses(dir, "Attributes"); err != nil {
		return nil, err
	}
	return d.Disk.AttributeIn(dir, d.as(dir, name), attribute)
}

// The calls on open files.

func (d *Disk) Chmod(fd int, perm uint32) error {
	if err := d.refuses(fd, "Chmod"); err != nil {
		return err
	}
	if d.KeepsModes && d.below(fd) {
		return nil
	}
	return d.Disk.Chmod(fd, perm)
}

func (d *Disk) Chown(fd int, uid, gid uint32) error {
	if err := d.refuses(fd, "Chown"); err != nil {
		return err
	}
	return d.Disk.Chown(fd, uid, gid)
}

func (d *Disk) SetTimes(fd int, accessed, modified time.Time) error {
	if err := d.refuses(fd, "SetTimes"); err != nil {
		return err
	}
	return d.Disk.SetTimes(fd, accessed, modified)
}

func (d *Disk) Attributes(fd int) ([]string, error) {
	if err := d.refuses(fd, "Attributes"); err != nil {
		return nil, err
	}
	return d.Disk.Attributes(fd)
}

func (d *Disk) Attribute(fd int, name string) ([]byte, error) {
	if err := d.refuses(fd, "Attributes"); err != nil {
		return nil, err
	}
	return d.Disk.Attribute(fd, name)
}

func (d *Disk) SetAttribute(fd int, name string, value []byte) error {
	if err := d.refuses(fd, "SetAttribute"); err != nil {
		return err
	}
	return d.Disk.SetAttribute(fd, name, value)
}

func (d *Disk) RemoveAttribute(fd int, name string) error {
	if err := d.refuses(fd, "SetAttribute"); err != nil {
		return err
	}
	return d.Disk.RemoveAttribute(fd, name)
}

func (d *Disk) Clone(to, from int) error {
	if err := d.refuses(to, "Clone"); err != nil {
		return err
	}
	return d.Disk.Clone(to, from)
}

// CopiesRanges says yes where CopyRange is refused, so that it is tried.
func (d *Disk) CopiesRanges(fd int) bool {
	return d.Refuses["CopyRange"] != nil || d.Disk.CopiesRanges(fd)
}

func (d *Disk) CopyRange(to, from int, at int64, n int) (int, error) {
	if err := d.refuses(to, "CopyRange"); err != nil {
		return 0, err
	}
	return d.Disk.CopyRange(to, from, at, n)
}

func (d *Disk) Free(fd int) (int64, error) {
	if err := d.refuses(fd, "Free"); err != nil {
		return 0, err
	}
	return d.Disk.Free(fd)
}

func (d *Disk) Lock(fd int) error {
	if err := d.refuses(fd, "Lock"); err != nil {
		return err
	}
	return d.Disk.Lock(fd)
}

func (d *Disk) Sync(fd int) error {
	if d.Refuses["SyncDir"] != nil {
		var is syscall.Stat_t
		if syscall.Fstat(fd, &is) == nil && is.Mode&syscall.S_IFMT == syscall.S_IFDIR {
			if err := d.refuses(fd, "SyncDir"); err != nil {
				return err
			}
		}
	}
	return d.Disk.Sync(fd)
}

// SyncsAll says no, as for every mount of this kind.
func (d *Disk) SyncsAll(int) bool { return false }
