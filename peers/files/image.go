package main

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/volume"
)

// smallest is the least size of an image, of which only what is written takes room.
const smallest = 2 << 30

// An image is a place on a file system of its own, new for each round.
type image struct {
	kind volume.Kind
	dir  string
	room int64 // what a round takes
}

// size leaves room for what the file system needs itself.
func (i *image) size() int64 { return max(smallest, 2*i.room) }

func (i *image) String() string {
	return fmt.Sprintf("%s in an image of %.3g GiB on %s, new for each round", i.kind.Name, float64(i.size())/(1<<30), fileSystemOf(i.dir))
}

func (i *image) can() error { return i.kind.Can() }

// open makes and mounts the file system. Its done checks it and removes it.
func (i *image) open(ctx context.Context) (dir string, done func() error, err error) {
	v, err := volume.Make(ctx, i.dir, i.kind, i.size())
	if err != nil {
		return "", nil, err
	}
	return v.Dir(), v.Close, nil
}
