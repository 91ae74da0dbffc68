package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// NewImages makes the folder in parent. It first removes what killed processes have
// left there, as [Make] does.
func NewImages(parent string) (*Images, error) {
	parent, err := resolved(parent)
	if err != nil {
		return nil, err
	}
	removed := removeLeftovers(parent)
	folder, lock, err := claim(parent, Kind{Name: guestKind})
	if err != nil {
		return nil, err
	}
	return &Images{folder, lock, removed}, nil
}

func (i *Images) close() error {
	if err := removeAll(i.folder); err != nil {
		return fmt.Errorf("%s is left: %w", i.folder, err)
	}
	err := i.lock.Close()
	i.lock = nil
	return err
}

// ofGuest lists what a guest's kernel has in its folder: its first root, how it ended,
// its memory's file until that has no name, and a folder with its process number and
// its socket.
var ofGuest = []string{"initramfs", "outcome.json", "vm_file-*", "guest", "guest/pid", "guest/mconsole"}

func isImage(name string) bool {
	kind, ok := strings.CutPrefix(name, imagePrefix)
	return ok && slices.ContainsFunc(Kinds(), func(k Kind) bool { return k.Name == kind })
}

// isGuests tells whether a folder is one that a guest's kernel had: by its name and by
// all that is in it.
func isGuests(folder string) bool {
	if !strings.HasPrefix(filepath.Base(folder), GuestPrefix) {
		return false
	}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		name, _ := filepath.Rel(folder, path)
		if err != nil || name == "." {
			return err
		}
		for _, known := range ofGuest {
			if ok, _ := filepath.Match(known, name); ok {
				return nil
			}
		}
		return fs.ErrExist
	})
	return err == nil
}

// removeGuests removes the images in a folder and what the guest's kernel had there,
// unless that lives: its folder is the one that it was started in.
func removeGuests(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case isImage(e.Name()):
			err = os.Remove(path)
		case !isGuests(path):
		case isUsed(path):
			err = fmt.Errorf("in %s a guest still goes on: %s; end that and run: holdfast volumes --clean %s", path, users(path), filepath.Dir(folder))
		default:
			err = os.RemoveAll(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// imageBytes is what all images in a folder take on the disk.
func imageBytes(folder string) (all int64) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if e.Name() == imageName || isImage(e.Name()) {
			all += taken(filepath.Join(folder, e.Name()))
		}
	}
	return all
}
