//go:build !linux

package sys

import "errors"

// A Bell is not to be had here.
type Bell struct{}

// NewBell returns errors.ErrUnsupported.
func NewBell() (*Bell, error) { return nil, errors.ErrUnsupported }

// Ring returns errors.ErrUnsupported.
func (*Bell) Ring() error { return errors.ErrUnsupported }

// Wait returns errors.ErrUnsupported.
func (*Bell) Wait() error { return errors.ErrUnsupported }

// Close returns errors.ErrUnsupported.
func (*Bell) Close() error { return errors.ErrUnsupported }
