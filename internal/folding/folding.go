// Package folding finds two names that a file system takes for one: exFAT, NTFS, APFS, SMB and a
// casefold directory of ext4 do not tell A from a, and some not é from e with an accent.
package folding

import (
	"fmt"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// Names holds the names that one call has given in one directory, so that it does not write one of
// its files over another. A nil Names is of a directory that tells all names apart, and holds
// nothing. Any goroutine may call Give.
type Names struct {
	mu      sync.Mutex
	files   map[file]sys.Name   // the last name of each file
	spelled map[string]sys.Name // the last name of each folded spelling: some systems change inodes
}

type file struct{ device, inode uint64 }

// A TakenError says that a file system takes a name for another one, which the same call has given
// to a file.
type TakenError struct{ Name, Other string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s and %s are one name on this file system, and %[2]s was written by the same call; give one of them another name", e.Name, e.Other)
}

// A Disk looks names up: see vfs.Disk.
type Disk interface {
	Stat(dir int, name sys.Name) (sys.Stat, error)
	OpenDirIn(dir int, name sys.Name) (fd int, err error)
	ReadNames(fd int, buf []byte, to []sys.DirEntry) ([]sys.DirEntry, error)
	Close(fd int) error
}

// Give calls do, which gives a file this name in an open directory, unless the name is already taken
// by a file of the same call under another spelling: then it returns a *TakenError.
func (n *Names) Give(d Disk, dir int, name sys.Name, do func() error) error {
	if n == nil {
		return do()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if is, err := d.Stat(dir, name); err == nil {
		for _, other := range []sys.Name{n.files[file{is.Device, is.Inode}], n.spelled[fold(name)]} {
			if other != "" && other != name && !listsBoth(d, dir, name, other) {
				return &TakenError{name.String(), other.String()}
			}
		}
	}
	if err := do(); err != nil {
		return err
	}
	if n.files == nil {
		n.files, n.spelled = map[file]sys.Name{}, map[string]sys.Name{}
	}
	own := sys.Name(strings.Clone(string(name))) // a caller's names share their memory
	n.spelled[fold(own)] = own
	if is, err := d.Stat(dir, name); err == nil && is.Inode != 0 {
		n.files[file{is.Device, is.Inode}] = own
	}
	return nil
}

// listsBoth reports whether a directory has two names in these very spellings. Servers of FUSE give
// one file a number for each spelling, so the numbers do not tell that.
func listsBoth(d Disk, dir int, a, b sys.Name) bool {
	fd, err := d.OpenDirIn(dir, sys.Name(".\x00"))
	if err != nil {
		return false // its file is not replaced
	}
	defer d.Close(fd) // it was only read
	buf, hasA, hasB := make([]byte, 32<<10), false, false
	for {
		names, err := d.ReadNames(fd, buf, nil)
		if err != nil || len(names) == 0 {
			return false
		}
		for _, e := range names {
			hasA, hasB = hasA || e.Name == a, hasB || e.Name == b
		}
		if hasA && hasB {
			return true
		}
	}
}

func fold(name sys.Name) string { return strings.ToLower(strings.ToUpper(string(name))) }
