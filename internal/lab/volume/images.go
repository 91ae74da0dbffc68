package volume

import (
	"context"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/internal/own"
)

// Images is a directory of images for another program to mount, such as a guest's kernel.
// Like a volume it has a marker, which is locked while it is in use. So it is a
// [Leftover] after a kill. It is for one goroutine.
type Images struct {
	Removed []string // the paths of the leftovers that NewImages removed first

	dir  *own.Dir
	lock *os.File // the marker; nil once it is closed
}

// guestKind is the Kind of a leftover of images. GuestPrefix begins the name of the
// directory that the guest's kernel has beside the images.
const (
	guestKind   = "uml"
	GuestPrefix = "uml-boot-"
)

// Dir returns the path of the directory, as [own.Dir.Path].
func (i *Images) Dir() string { return i.dir.Path() }

// ImageName returns the name of a kind's image in the directory.
func ImageName(kind string) string { return imagePrefix + kind }

// Make makes the file system of a kind in an image of size bytes. It waits for mkfs.
// After an error there is no image of that kind, unless the error says so.
func (i *Images) Make(ctx context.Context, k Kind, size int64) error {
	return k.MakeImage(ctx, i.image(k), size)
}

// Check lets the file system's own program check the image, as [Kind.CheckImage].
func (i *Images) Check(ctx context.Context, k Kind) error { return k.CheckImage(ctx, i.image(k)) }

func (i *Images) image(k Kind) string { return filepath.Join(i.Dir(), ImageName(k.Name)) }

const imagePrefix = "image-"
