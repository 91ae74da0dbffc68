//go:build !linux && !go1.25

package files

import (
	"os"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// whyNoRoot: [os.Root] neither renames nor links.
const whyNoRoot = "by a program built with Go 1.24; build it with Go 1.25 or newer"

func inRoot(*os.Root) (vfs.Disk, paths) { return sys.Disk{}, systemPaths{} } // Validate refuses it
