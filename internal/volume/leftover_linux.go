package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
	"github.com/holdfast-go/holdfast/internal/workdir"
	"golang.org/x/sys/unix"
)

// Leftovers returns what killed processes have left of volumes in these directories.
// Without directories, it looks in the current one and wherever one is still mounted or
// has a loop device. They are in the order of their names, each once. It changes nothing.
// If this user may not look into a directory, or it is not this user's alone
// ([workdir.ForeignError]), it returns an error and the others.
func Leftovers(parents ...string) ([]Leftover, error) {
	var dirs []string
	if len(parents) == 0 {
		var err error
		if dirs, err = attached(); err != nil {
			return nil, err
		}
		parents = []string{"."}
	}
	for _, parent := range parents {
		parent, err := resolved(parent)
		if err != nil {
			return nil, err
		}
		beside, err := dirsIn(parent)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, beside...)
	}
	slices.Sort(dirs)
	var all []Leftover
	var hidden []error
	until := time.Now().Add(scanning)
	for _, dir := range slices.Compact(dirs) {
		r, err := inspect(dir, until)
		var foreign *workdir.ForeignError
		if errors.Is(err, fs.ErrPermission) || errors.As(err, &foreign) {
			hidden = append(hidden, err)
		}
		if err != nil {
			continue // in use, or none of ours
		}
		all = append(all, r.Leftover)
		r.close()
	}
	return all, errors.Join(hidden...)
}

// attached returns the directories of all mounts and of all loop devices' images.
func attached() ([]string, error) {
	all, err := mountinfo.Read()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, m := range all {
		dirs = append(dirs, filepath.Dir(m.Point))
	}
	for _, image := range loops() {
		dirs = append(dirs, filepath.Dir(image))
	}
	return dirs, nil
}

// dirsIn returns the directories in parent that have the name of a volume's.
func dirsIn(parent string) ([]string, error) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && ourName(e.Name()) {
			dirs = append(dirs, filepath.Join(parent, e.Name()))
		}
	}
	return dirs, nil
}

// remains are a leftover with its open directory and its locked marker.
type remains struct {
	Leftover
	dir  *workdir.Dir
	lock *os.File // nil if the process was killed before it made the marker
}

func (r *remains) close() {
	if r.lock != nil {
		_ = r.lock.Close()
	}
	_ = r.dir.Close()
}

// inspect makes sure that a directory is a volume's of this user that no process uses
// any more. It takes the lock of its marker, and waits for it until the time given.
func inspect(directory string, until time.Time) (*remains, error) {
	parent, name := filepath.Split(directory)
	if !ourName(name) {
		return nil, fmt.Errorf("%s is not a name of a volume's directory", name)
	}
	dir, err := workdir.Open(filepath.Clean(parent), name)
	if err != nil {
		return nil, err
	}
	r := &remains{Leftover{Dir: directory}, dir, nil}
	if err := r.look(until); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// look fills in the marker's fields, once it is locked.
func (r *remains) look(until time.Time) (err error) {
	if err := onlyOurs(r.dir); err != nil {
		return err
	}
	r.lock, err = r.dir.Root().OpenFile(markerName, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := r.dir.Entries()
		if err == nil && len(entries) > 0 {
			return fmt.Errorf("%s has no marker of a volume", r.dir.Name())
		}
		return err
	}
	if err != nil {
		return err
	}
	locked, err := takeLock(r.lock)
	if errors.Is(err, ErrAlive) {
		locked, err = r.outlast(until)
	}
	if err != nil {
		return err
	}
	if err := stillIn(r.dir, r.lock); err != nil {
		return err
	}
	m, err := readMarker(r.lock)
	if err != nil {
		return err
	}
	if !locked && m.alive() {
		return ErrAlive
	}
	r.Kind, r.Process, r.Made = m.Kind, m.Process, m.Made
	entries, _ := r.dir.Entries()
	for _, e := range entries {
		if e.Name() != imageName && !isImage(e.Name()) {
			continue
		}
		if info, err := r.dir.Root().Lstat(e.Name()); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				r.Bytes += stat.Blocks * 512
			}
		}
	}
	_, r.Mounted, err = mountedIn(r.dir)
	return err
}

// scanning bounds the wait for locks of dead processes, for all directories together.
const scanning = patience / 8

// outlast waits for the lock if its process is dead. That process may have been about to
// start a program; its child shares the lock until it runs the program.
func (r *remains) outlast(until time.Time) (locked bool, err error) {
	m, err := readMarker(r.lock)
	if err != nil {
		return false, err
	}
	if m.Process == 0 || m.alive() {
		return false, ErrAlive
	}
	err = patiently(func() error {
		locked, err = takeLock(r.lock)
		return err
	}, ErrAlive, time.Until(until))
	return locked, err
}

// resolved returns a path without links, as the kernel shows it.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// onlyOurs makes sure that a directory has only what a volume has.
func onlyOurs(dir *workdir.Dir) error {
	entries, err := dir.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case e.Name() == mountName && e.IsDir():
		case (e.Name() == markerName || e.Name() == imageName || isImage(e.Name())) && e.Type().IsRegular():
		case e.IsDir() && isGuests(dir.Root(), e.Name()):
		default:
			return fmt.Errorf("%q in %s does not belong to a volume", e.Name(), dir.Name())
		}
	}
	return nil
}

// removeLeftovers removes what it can in parent and returns the directories. A volume that is in
// use or can't be unmounted stays, and does not prevent a new volume.
func removeLeftovers(parent string) []string {
	dirs, _ := dirsIn(parent)
	var removed []string
	until := time.Now().Add(scanning)
	for _, dir := range dirs {
		if removeLeftover(dir, until) == nil {
			removed = append(removed, dir)
		}
	}
	return removed
}

// RemoveLeftover unmounts and removes what is left of a volume in a directory. It
// touches nothing unless all of it proves to be of a volume that no process uses any
// more. The proof is the directory's owner and name, a marker with a free lock, its files, and its
// mounts. If its process lives, the error is [ErrAlive]. If a process has a file open there, the
// error names that process. If the directory is not this user's alone, the error is an
// [workdir.ForeignError].
func RemoveLeftover(dir string) error {
	parent, err := resolved(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return removeLeftover(filepath.Join(parent, filepath.Base(dir)), time.Now().Add(scanning))
}

func removeLeftover(dir string, until time.Time) error {
	r, err := inspect(dir, until)
	if err != nil {
		return err
	}
	defer r.close()
	if r.lock == nil { // it is empty, or another process writes its marker just now
		return r.dir.Remove()
	}
	return removeAll(r.dir)
}

// removeAll unmounts and removes a volume. It removes the marker last: what a killed
// removal leaves is then a leftover too.
func removeAll(dir *workdir.Dir) error {
	if err := unmountAll(dir, patience); err != nil {
		return err
	}
	if err := detach(dir); err != nil {
		return err
	}
	// The images, and the files of a guest's kernel. If that kernel lives, its working
	// directory is there.
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
			err = fmt.Errorf("a guest kernel is still running in %s: %s; stop it, then run: holdfast volumes --clean %s", at, users(at), filepath.Dir(where(dir)))
		default:
			err = workdir.RemoveAll(dir.Root(), e.Name())
		}
		if err != nil {
			return err
		}
	}
	for _, name := range []string{imageName, markerName} {
		if err := dir.Root().Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := dir.Remove(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// detach makes sure that no loop device has the image in a volume's directory.
func detach(dir *workdir.Dir) error {
	image := imageOf(dir)
	return patiently(func() error {
		for _, device := range loopsOf(image) {
			if err := clearLoop(device, image); err != nil {
				return err
			}
		}
		if left := loopsOf(image); left != nil {
			return fmt.Errorf("%s still has %s: %w", left[0], imageIn(dir.Name()), unix.EBUSY)
		}
		return nil
	}, unix.EBUSY, patience)
}
