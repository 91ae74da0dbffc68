//go:build !linux

package study

import "errors"

// OpenDataSync is 0: there is no O_DSYNC here that Go knows.
const OpenDataSync = 0

// Reflinks returns [errors.ErrUnsupported].
func Reflinks(_, _ int) error { return errors.ErrUnsupported }
