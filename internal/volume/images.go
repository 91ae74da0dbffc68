package volume

import (
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/internal/workdir"
)

// Images is a directory of images for another program to mount, such as a guest's kernel.
// Like a volume it has a marker, which is locked while it is in use. So it is a
// [Leftover] after a kill. It is for one goroutine.
type Images struct {
	Removed []string // the paths of the leftovers that NewImages removed first

	dir  *workdir.Dir
	lock *os.File // the marker; nil once it is closed
}

// guestKind is the Kind of a leftover of images. GuestPrefix begins the name of the
// directory that the guest's kernel has beside the images.
const (
	guestKind   = "uml"
	GuestPrefix = "uml-boot-"
)

// Dir returns the path of the directory, as [workdir.Dir.Path].
func (i *Images) Dir() string { return i.dir.Path() }

// ImageName returns the name of a kind's image in the directory.
func ImageName(kind string) string { return imagePrefix + kind }

// Path returns the path of a kind's image: [Kind.MakeImage] makes it, and [Kind.CheckImage]
// checks it.
func (i *Images) Path(k Kind) string { return filepath.Join(i.Dir(), ImageName(k.Name)) }

const imagePrefix = "image-"
