package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A state is the sources' state in the page cache.
type state string

const (
	warm state = "warm"
	cold state = "cold"
)

var states = []state{warm, cold}

// bring brings the sources into a state, and proves it.
func (s state) bring(ctx context.Context, paths []string, chill func(context.Context) error) error {
	if s == cold && chill != nil {
		if err := chill(ctx); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if err := s.bringFile(path, chill != nil); err != nil {
			return err
		}
	}
	return nil
}

func (s state) bringFile(path string, chilled bool) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch {
	case s == warm:
		_, err = io.Copy(io.Discard, f)
	case !chilled:
		err = sys.Evict(f)
	}
	if err != nil {
		return err
	}
	is, err := sys.PageCache(f)
	if err != nil {
		return err
	}
	if s == cold && is.Resident > 0 {
		return fmt.Errorf("%s can't be made cold: %d of its %d pages are in the page cache", path, is.Resident, is.Pages)
	}
	return nil
}
