//go:build !linux

package sys

import "os"

// DropRefused does nothing: only ext4 needs it.
func DropRefused(*os.File, int64) {}
