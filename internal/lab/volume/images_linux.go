package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/own"
)

// NewImages makes the directory in parent. Like [Make], it first removes what killed
// processes have left there.
func NewImages(parent string) (*Images, error) {
	parent, err := resolved(parent)
	if err != nil {
		return nil, err
	}
	removed := removeLeftovers(parent)
	dir, lock, err := claim(parent, Kind{Name: guestKind})
	if err != nil {
		return nil, err
	}
	return &Images{dir, lock, removed}, nil
}

func (i *Images) close() error {
	if err := removeAll(i.dir); err != nil {
		return fmt.Errorf("%s is left: %w", i.dir.Name(), err)
	}
	err := errors.Join(i.lock.Close(), i.dir.Close())
	i.lock = nil
	return err
}

// ofGuest lists what a guest's kernel has in its directory. There are its first root, how
// it ended and, for a moment, its memory's file. A directory has its process number and
// its socket.
var ofGuest = []string{"initramfs", "outcome.json", "vm_file-*", "guest", "guest/pid", "guest/mconsole"}

func isImage(name string) bool {
	kind, ok := strings.CutPrefix(name, imagePrefix)
	return ok && slices.ContainsFunc(Kinds(), func(k Kind) bool { return k.Name == kind })
}

// isGuests reports whether a guest's kernel had a directory in root. It decides by the
// directory's name and by all that is in it.
func isGuests(root *os.Root, dir string) bool {
	if !strings.HasPrefix(dir, GuestPrefix) {
		return false
	}
	err := fs.WalkDir(root.FS(), dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		for _, known := range ofGuest {
			if ok, _ := path.Match(dir+"/"+known, name); ok {
				return nil
			}
		}
		return fs.ErrExist
	})
	return err == nil
}

// removeGuests removes the images in a directory and what the guest's kernel had there.
// If that kernel lives, its working directory is there, and removeGuests refuses.
func removeGuests(dir *own.Dir) error {
	entries, err := dir.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := filepath.Join(where(dir), e.Name())
		switch {
		case isImage(e.Name()):
			err = dir.Root().Remove(e.Name())
		case !isGuests(dir.Root(), e.Name()):
		case len(processesIn(at)) > 0:
			err = fmt.Errorf("in %s a guest still goes on: %s; end that and run: holdfast volumes --clean %s", at, users(at), filepath.Dir(where(dir)))
		default:
			err = dir.Root().RemoveAll(e.Name())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
