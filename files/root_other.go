//go:build !linux && go1.25

package files

import (
	"os"

	"github.com/holdfast-go/holdfast/internal/vfs"
)

const whyNoRoot = ""

// inRoot returns the calls below a root.
func inRoot(root *os.Root) (vfs.Disk, paths) { return inPortableRoot(root) }
