//go:build !linux

package sys

import "os"

// Reserve does nothing here.
func Reserve(*os.File, int64) error { return nil }
