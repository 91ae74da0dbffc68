package study

import (
	"errors"
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/internal/trial"
)

// noReflink says why no two files on the ground can share their bytes, or is empty:
// it tries.
func noReflink(g *trial.Ground) string {
	from, err := os.CreateTemp(g.Dir(), "reflink-from-*")
	if err != nil {
		return err.Error()
	}
	to, err := os.CreateTemp(g.Dir(), "reflink-to-*")
	if err != nil {
		_ = errors.Join(from.Close(), os.Remove(from.Name()))
		return err.Error()
	}
	defer func() {
		_ = errors.Join(from.Close(), to.Close(), os.Remove(from.Name()), os.Remove(to.Name())) // what is left goes with the ground
	}()
	if _, err := from.Write(make([]byte, pageBytes)); err != nil {
		return err.Error()
	}
	if err := reflinks(int(from.Fd()), int(to.Fd())); err != nil {
		return fmt.Sprintf("files on %s can't share their bytes: FICLONE: %v", g.FileSystem, err)
	}
	return ""
}
