package usermode

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"syscall"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/uml"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// A guestWork is work that the guest does with the programs outside.
type guestWork struct {
	Args  []string `json:"args"`
	Input []byte   `json:"input"`
}

// workMemory is a guest's memory for work: disks in memory, and their logs.
const workMemory = 2 << 30

// Can implements [place.Starter].
func (Kernel) Can(ctx context.Context, kind string) error {
	kernel, err := find(ctx)
	if err != nil {
		return err
	}
	kinds, err := volume.Parse(kind)
	if err != nil {
		return err
	}
	if err := kernel.Can(kinds[0].Type); err != nil {
		return err
	}
	return kinds[0].CanMake()
}

// Start implements [place.Starter].
func (Kernel) Start(ctx context.Context, w place.Work) (err error) {
	kernel, err := find(ctx)
	if err != nil {
		return err
	}
	kinds, err := volume.Parse(w.Kind)
	if err != nil {
		return err
	}
	task, err := json.Marshal(guestWork{w.Args, w.Input})
	if err != nil {
		return err
	}
	images, err := volume.NewImages(w.Dir) // a directory that is removed after a kill too
	if err != nil {
		return place.CannotMake(err)
	}
	defer func() { err = errors.Join(err, images.Close()) }()
	line, theirs, err := uml.NewLine()
	if err != nil {
		return err
	}
	defer line.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- kernel.Run(ctx, uml.Guest{Command: workCommand, Task: task, Modules: []string{"loop", "fuse", kinds[0].Type},
			Memory: workMemory, Share: images.Dir(), Tools: true, Silence: silence, Line: theirs})
	}()
	err = w.Output(untilReset{line})
	if err != nil {
		stop()
	}
	return errors.Join(err, <-ended)
}

// An untilReset is a line whose end is an end, whether or not the guest had read all.
type untilReset struct{ line io.Reader }

func (r untilReset) Read(p []byte) (int, error) {
	n, err := r.line.Read(p)
	if errors.Is(err, syscall.ECONNRESET) {
		err = io.EOF
	}
	return n, err
}
