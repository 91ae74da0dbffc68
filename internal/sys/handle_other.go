//go:build !linux && !darwin

package sys

import "errors"

type handleState struct{}

// Datasync is not supported here; os.File.Sync is.
func (h *Handle) Datasync() error { return errors.ErrUnsupported }

// Links is not supported here.
func (h *Handle) Links() (uint64, error) { return 0, errors.ErrUnsupported }
