package sys

import (
	"errors"
	"os"
)

// SyncDir is not to be had: Windows syncs no directories. NTFS logs the creation
// of a name in its journal.
func SyncDir(*os.File) error { return errors.ErrUnsupported }
