package prove

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
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

func (s real) Set(o files.Options) (*files.Set, error) { return files.New(o) }

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

func (s real) SyncDir() error { return syncDir(s.dir) }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
