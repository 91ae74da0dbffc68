//go:build !linux

package files

import (
	"os"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// keepsRoots: the other systems' calls take paths, which a link may lead elsewhere.
const keepsRoots = false

func inRoot(*os.Root) (vfs.Disk, paths) { return sys.Disk{}, systemPaths{} } // Validate refuses it
