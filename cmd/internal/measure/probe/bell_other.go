//go:build !linux

package probe

import "errors"

// A Bell exists on Linux only.
type Bell struct{}

// NewBell returns errors.ErrUnsupported.
func NewBell() (*Bell, error) { return nil, errors.ErrUnsupported }

// Ring returns errors.ErrUnsupported.
func (*Bell) Ring() error { return errors.ErrUnsupported }

// Wait returns errors.ErrUnsupported.
func (*Bell) Wait() error { return errors.ErrUnsupported }

// Close returns errors.ErrUnsupported.
func (*Bell) Close() error { return errors.ErrUnsupported }
