package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// A place is where the trials of a round are.
type place interface {
	fmt.Stringer
	can() error
	// open returns a folder for a round, what makes all of it cold, or nil, and what ends it.
	open(ctx context.Context) (dir string, chill func(context.Context) error, done func() error, err error)
}

// A folder is a place on a file system that is there.
type folder struct{ parent string }

func (f *folder) can() error { return nil }

func (f *folder) String() string {
	kind, err := sys.FileSystem(f.parent)
	if err != nil {
		return "an unknown file system"
	}
	return kind
}

func (f *folder) open(context.Context) (string, func(context.Context) error, func() error, error) {
	dir, err := os.MkdirTemp(f.parent, "peers-")
	return dir, nil, func() error { return os.RemoveAll(dir) }, err
}

// An image is a place on a file system of its own, new for each round.
type image struct {
	kind   volume.Kind
	parent string
	room   int64 // what a round writes
}

func (i *image) can() error { return i.kind.Can() }

func (i *image) String() string {
	return fmt.Sprintf("%s in an image of %.3g GiB on %v, new for each round", i.kind.Name, float64(i.size())/gib, &folder{i.parent})
}

func (i *image) size() int64 { return max(2*gib, 2*i.room) }

func (i *image) open(ctx context.Context) (string, func(context.Context) error, func() error, error) {
	v, err := volume.Make(ctx, i.parent, i.kind, i.size())
	if err != nil {
		return "", nil, nil, err
	}
	return v.Dir(), v.Remount, v.Close, nil
}

// A state is what the page cache holds of the sources.
type state string

const (
	warm state = "warm"
	cold state = "cold"
)

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
