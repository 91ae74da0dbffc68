package sys

import (
	"errors"
	"os"
)

// SyncDir is not supported: Windows syncs no directories. NTFS logs the creation of a name in its
// journal.
func SyncDir(*os.File) error { return errors.ErrUnsupported }
