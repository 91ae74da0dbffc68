//go:build !linux

package files

import (
	"errors"
	"os"
)

func deviceOf(os.FileInfo) uint64 { return 0 }

func writeError(int) error { return errors.ErrUnsupported }

// keepAdded syncs a file that the program has given to Add: no system but Linux syncs many at once.
func (b *Batch) keepAdded(file *os.File, x keptFile) { b.syncAdded(file, x) }
