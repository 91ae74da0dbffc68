package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
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
	return &Images{removed, dir, lock}, nil
}

// Close removes all of it. If a guest still has an image, the error names it and all
// stays; Close may be called again. Once all is removed, Close returns nil.
func (i *Images) Close() error {
	if i.lock == nil {
		return nil
	}
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
