package crash

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A real is the System of a directory on a real file system.
type real struct{ dir string }

// Real returns the System of a directory.
func Real(dir string) System { return real{dir} }

func (s real) Path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s real) ReadFile(name string) ([]byte, error) {
	data, err := os.ReadFile(s.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (s real) Append(name string, size int64) (holdfast.File, error) {
	f, err := os.OpenFile(s.Path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(size), f.Sync(), s.SyncDir()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s real) Disk() vfs.ReadDisk { return nil }

func (s real) Files(name string) (map[string][]byte, error) { return Files(s.Path(name)) }

func (s real) WriteFile(name string, data []byte, sync bool) error {
	f, err := os.OpenFile(s.Path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (s real) Rename(from, to string) error { return os.Rename(s.Path(from), s.Path(to)) }

func (s real) SyncDir() error {
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Files returns the bytes of the files of a directory by their names, without directories below.
func Files(dir string) (all map[string][]byte, err error) {
	entries, err := os.ReadDir(dir)
	all = map[string][]byte{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		switch {
		case err == nil:
			all[e.Name()] = data
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return all, err
}

// read returns the bytes of a target's file in a directory, or what it gathers from some directories.
func (t *Target) read(dirs ...string) ([]byte, error) {
	if t.Gather == nil {
		return real{dirs[0]}.ReadFile(path.Base(t.Path))
	}
	var all []map[string][]byte
	for _, dir := range dirs {
		files, err := Files(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, files)
	}
	return t.Gather(all...), nil
}

// Look says what is there below a directory in which the workload has run.
func (w *Workload) Look(dir string, targets []Target) (*Survivors, error) {
	if w.Survey == nil {
		return Survey(dir, targets)
	}
	return w.Survey(filepath.Join(dir, path.Dir(targets[0].Path)))
}

// Survey says what is there below a directory, by the paths of targets.
func Survey(dir string, targets []Target) (*Survivors, error) {
	s := NewSurvivors(len(targets))
	paths, ids := byPath(targets)
	for _, p := range paths {
		data, err := targets[ids[p][0]].read(filepath.Dir(filepath.Join(dir, filepath.FromSlash(p))))
		if err != nil {
			return nil, err
		}
		s.Survey(targets, ids[p], data)
	}
	return s, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && IsTemporary(d.Name()) {
			s.Temporaries++
		}
		return err
	})
}
