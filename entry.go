package holdfast

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// entry is the name of a new file in its directory, which fsync(2) of the file
// alone does not promise to make durable. The zero entry asks for nothing.
type entry struct {
	pending bool     // not durable yet
	path    string   // of the directory, absolute
	dir     *os.File // the directory, held open where the policy will sync
}

// newEntry opens the directory now if the policy syncs: it may be renamed before
// the first sync. A policy that never syncs costs no second descriptor.
func newEntry(file string, p Policy) (entry, error) {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return entry{}, fmt.Errorf("directory of the file: %w", err)
	}
	e := entry{pending: true, path: dir}
	if p.syncs() {
		if err := e.open(); err != nil {
			return entry{}, err
		}
	}
	return e, nil
}

func (e *entry) open() (err error) {
	if e.dir, err = os.Open(e.path); err != nil {
		return fmt.Errorf("directory of the file: %w", err)
	}
	return nil
}

// sync makes the name durable. It is called until it succeeds once.
func (e *entry) sync() error {
	if e.dir == nil {
		if err := e.open(); err != nil {
			return err
		}
	}
	err := sys.SyncDir(e.dir)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("directory of the file: %w", err)
	}
	e.pending = false
	return e.close()
}

func (e *entry) close() error {
	if e.dir == nil {
		return nil
	}
	dir := e.dir
	e.dir = nil
	return dir.Close()
}
