//go:build !linux

package volume

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

func elsewhere() error {
	return fmt.Errorf("no file systems can be made on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Can returns a [*MissingError].
func (k Kind) Can() error {
	return &MissingError{Kind: k.Name, Why: "no file systems can be made on " + runtime.GOOS}
}

// Make returns what [Kind.Can] does.
func Make(ctx context.Context, parent string, k Kind, size int64) (*Volume, error) {
	return nil, k.Can()
}

// Remount returns an error that wraps [errors.ErrUnsupported].
func (v *Volume) Remount(ctx context.Context) error { return elsewhere() }

// Close returns an error that wraps [errors.ErrUnsupported].
func (v *Volume) Close() error { return elsewhere() }

// Leftovers returns none.
func Leftovers(parents ...string) ([]Leftover, error) { return nil, nil }

// RemoveLeftover returns an error that wraps [errors.ErrUnsupported].
func RemoveLeftover(dir string) error { return elsewhere() }

// NewImages returns an error that wraps [errors.ErrUnsupported].
func NewImages(parent string) (*Images, error) { return nil, elsewhere() }

// Close returns an error that wraps [errors.ErrUnsupported].
func (i *Images) Close() error { return elsewhere() }
