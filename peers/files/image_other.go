//go:build !linux

package main

import (
	"context"
	"errors"
)

var makers = map[string]struct{}{"ext4": {}, "xfs": {}, "btrfs": {}}

type image struct {
	kind, dir string
	room      int64
}

func (i *image) String() string { return i.kind + " in an image" }
func (i *image) can() error     { return errors.New("images are for Linux") }
func (i *image) open(context.Context) (string, func() error, error) {
	return "", nil, errors.ErrUnsupported
}

func fillDisk(string) (lift, unmount func() error, err error) {
	return nil, nil, &unsupported{"a disk to fill is for Linux"}
}
