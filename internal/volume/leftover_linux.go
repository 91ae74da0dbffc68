package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

// Leftovers returns what killed processes have left of volumes in these folders; with
// no folders, in the current one and wherever one is still mounted or has a loop device.
// They are in the order of their names, each once. It changes nothing. What this user
// may not look at is an error beside the others.
func Leftovers(parents ...string) ([]Leftover, error) {
	var folders []string
	if len(parents) == 0 {
		var err error
		if folders, err = attached(); err != nil {
			return nil, err
		}
		parents = []string{"."}
	}
	for _, parent := range parents {
		parent, err := resolved(parent)
		if err != nil {
			return nil, err
		}
		beside, err := foldersIn(parent)
		if err != nil {
			return nil, err
		}
		folders = append(folders, beside...)
	}
	slices.Sort(folders)
	return leftoversOf(slices.Compact(folders))
}

// attached returns the folders of all mounts and of all loop devices' images.
func attached() ([]string, error) {
	all, err := mountinfo.Read()
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, m := range all {
		folders = append(folders, filepath.Dir(m.Point))
	}
	for _, image := range loops() {
		folders = append(folders, filepath.Dir(image))
	}
	return folders, nil
}

// foldersIn returns the folders that have the name of a volume's.
func foldersIn(parent string) ([]string, error) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() && ourName(e.Name()) {
			folders = append(folders, filepath.Join(parent, e.Name()))
		}
	}
	return folders, nil
}

func leftoversOf(folders []string) ([]Leftover, error) {
	var all []Leftover
	var hidden []error
	for _, folder := range folders {
		l, lock, err := inspect(folder)
		if errors.Is(err, fs.ErrPermission) {
			hidden = append(hidden, err)
		}
		if err != nil {
			continue // in use, or none of ours
		}
		if lock != nil {
			_ = lock.Close()
		}
		all = append(all, l)
	}
	return all, errors.Join(hidden...)
}

// inspect makes sure that a folder is a volume's that nobody has any more, and takes
// the lock of its marker. There is none in a folder whose maker was killed at once.
func inspect(folder string) (l Leftover, lock *os.File, err error) {
	l = Leftover{Folder: folder}
	if err := onlyOurs(folder); err != nil {
		return l, nil, err
	}
	lock, err = openMarker(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil, empty(folder)
	}
	if err != nil {
		return l, nil, err
	}
	if err := l.read(lock); err != nil {
		return l, nil, errors.Join(err, lock.Close())
	}
	return l, lock, nil
}

// openMarker follows no link, which may have come since the folder was looked at.
func openMarker(folder string) (*os.File, error) {
	return os.OpenFile(markerIn(folder), os.O_RDWR|syscall.O_NOFOLLOW, 0)
}

// read fills in what the marker says, once it is locked.
func (l *Leftover) read(lock *os.File) error {
	locked, err := takeLock(lock)
	if errors.Is(err, ErrAlive) {
		locked, err = l.outlast(lock)
	}
	if err != nil {
		return err
	}
	m, err := readMarker(lock)
	if err != nil {
		return err
	}
	if !locked && m.alive() {
		return ErrAlive
	}
	l.Kind, l.Process, l.Made = m.Kind, m.Process, m.Made
	l.Bytes = imageBytes(l.Folder)
	_, l.Mounted, err = mountedOn(mountIn(l.Folder))
	return err
}

// taken is what a file takes on the disk, or 0 if there is none.
func taken(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Blocks * 512
}

// outlast waits a moment for the lock if its process is dead: one that it was about to
// start when it was killed shares the lock until it runs its program.
func (l *Leftover) outlast(lock *os.File) (locked bool, err error) {
	m, err := readMarker(lock)
	if err != nil {
		return false, err
	}
	if m.Process == 0 || m.alive() {
		return false, ErrAlive
	}
	err = patiently(func() error {
		locked, err = takeLock(lock)
		return err
	}, ErrAlive, patience/8)
	return locked, err
}

// resolved returns the name that the kernel knows a file by: without links.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// onlyOurs makes sure that a folder has the name of a volume's, is no link to one,
// and has nothing in it but what a volume has.
func onlyOurs(folder string) error {
	if !ourName(filepath.Base(folder)) {
		return fmt.Errorf("%s is no name that a volume gives its folder", filepath.Base(folder))
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", folder)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case e.Name() == mountName && e.IsDir():
		case (e.Name() == markerName || e.Name() == imageName || isImage(e.Name())) && e.Type().IsRegular():
		case e.IsDir() && isGuests(filepath.Join(folder, e.Name())):
		default:
			return fmt.Errorf("%s in %s is nothing that a volume has", e.Name(), folder)
		}
	}
	return nil
}

// empty is an error unless a folder is that.
func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s has no marker of a volume", folder)
	}
	return err
}

// removeLeftovers removes what it can in parent and returns the folders. What is
// in use or can't be unmounted stays: it must not stop a new volume.
func removeLeftovers(parent string) []string {
	folders, _ := foldersIn(parent)
	var removed []string
	for _, folder := range folders {
		if RemoveLeftover(folder) == nil {
			removed = append(removed, folder)
		}
	}
	return removed
}

// RemoveLeftover unmounts and removes what is left of a volume in a folder. It
// touches nothing unless all of it proves to be a volume's that nobody has any more:
// by the folder's name, by a marker whose lock is free, by what is in it, and by what
// is mounted there. A process that still has it is [ErrAlive]; one that has a file
// open there is named.
func RemoveLeftover(folder string) error {
	folder, err := resolved(folder)
	if err != nil {
		return err
	}
	_, lock, err := inspect(folder)
	if err != nil {
		return err
	}
	if lock == nil { // it is empty, or has got a maker in this moment
		return os.Remove(folder)
	}
	defer lock.Close()
	return removeAll(folder)
}

// removeAll unmounts and removes a volume. The marker goes last, so that what is left
// of a removal that was killed is a leftover too.
func removeAll(folder string) error {
	if err := unmountAll(folder, patience); err != nil {
		return err
	}
	if err := detach(imageIn(folder)); err != nil {
		return err
	}
	if err := removeGuests(folder); err != nil {
		return err
	}
	for _, path := range []string{mountIn(folder), imageIn(folder), markerIn(folder), folder} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
