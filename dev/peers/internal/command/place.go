package command

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// A Place is where trials write.
type Place interface {
	fmt.Stringer
	// Can returns why there is no such place here, or nil.
	Can() error
	// Open makes it ready for a round.
	Open(context.Context) (Opened, error)
}

// Opened is a place in a round.
type Opened struct {
	Dir   string
	Chill func(context.Context) error // makes all of it cold; nil where there is no such way
	Done  func() error                // ends it
}

// A Directory is a place that all rounds share.
type Directory string

// String names the file system.
func (d Directory) String() string { return FileSystem(string(d)) }

// Can returns nil.
func (d Directory) Can() error { return nil }

// Open returns the directory.
func (d Directory) Open(context.Context) (Opened, error) {
	return Opened{Dir: string(d), Done: func() error { return nil }}, nil
}

// FileSystem names the one of a directory.
func FileSystem(dir string) string {
	kind, err := sys.FileSystem(dir)
	if err != nil {
		return "an unknown file system"
	}
	return kind
}

// An Image is a place on a file system of its own, new for each round.
type Image struct {
	Kind   volume.Kind
	Parent string
	Room   int64 // a round's use, in bytes
}

// smallest is the least size of an image. Only what is written to it takes room.
const smallest = 2 << 30

// size leaves room for the file system's own blocks.
func (i Image) size() int64 { return max(smallest, 2*i.Room) }

func (i Image) String() string {
	return fmt.Sprintf("%s in an image of %.3g GiB on %s, new for each round", i.Kind.Name, float64(i.size())/(1<<30), FileSystem(i.Parent))
}

// Can returns why such a file system can't be made here, or nil.
func (i Image) Can() error { return i.Kind.Can() }

// Open makes and mounts the file system. Its Done checks it and removes it.
func (i Image) Open(ctx context.Context) (Opened, error) {
	v, err := volume.Make(ctx, i.Parent, i.Kind, i.size())
	if err != nil {
		return Opened{}, err
	}
	return Opened{Dir: v.Dir(), Chill: v.Remount, Done: v.Close}, nil
}

// Kinds reads the list of -fs; an empty one is of none.
func Kinds(list string) ([]volume.Kind, error) {
	if list == "" {
		return nil, nil
	}
	kinds, err := volume.Parse(list)
	if err != nil {
		return nil, Misuse("-fs: %w", err)
	}
	return kinds, nil
}
