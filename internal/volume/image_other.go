//go:build !linux

package volume

import "context"

// CanMake returns a [*MissingError]: the programs are of Linux.
func (k Kind) CanMake() error { return k.Can() }

// MakeImage returns an error: the programs are of Linux.
func (k Kind) MakeImage(ctx context.Context, image string, size int64) error { return elsewhere() }

// CheckImage returns an error: the programs are of Linux.
func (k Kind) CheckImage(ctx context.Context, image string) error { return elsewhere() }
