package volume

import (
	"context"
	"os"
	"path/filepath"
)

// Images is a folder of images that are for somebody else to mount, such as a guest's
// kernel. Like a volume it has a marker, which is locked while it is in use, and so is
// a [Leftover] after a kill. It is for one goroutine.
type Images struct {
	folder  string
	lock    *os.File // the marker; nil once it is closed
	removed []string
}

// guestKind is what a leftover of images is called, and GuestPrefix begins the name of
// the folder that the guest's kernel has beside the images.
const (
	guestKind   = "uml"
	GuestPrefix = "uml-boot-"
)

// Folder returns the path of the folder, and Removed those of the leftovers that were
// removed before it was made.
func (i *Images) Folder() string    { return i.folder }
func (i *Images) Removed() []string { return i.removed }

// ImageName is the name that the image of a kind has in the folder.
func ImageName(kind string) string { return imagePrefix + kind }

// Make makes the file system of a kind in an image of size bytes. It waits for mkfs.
// After an error there is no image of that kind, or the error says so.
func (i *Images) Make(ctx context.Context, k Kind, size int64) error {
	return k.MakeImage(ctx, i.image(k), size)
}

// Check lets the file system's own program look at the image, as [Kind.CheckImage].
func (i *Images) Check(ctx context.Context, k Kind) error { return k.CheckImage(ctx, i.image(k)) }

func (i *Images) image(k Kind) string { return filepath.Join(i.folder, ImageName(k.Name)) }

const imagePrefix = "image-"

// Close removes all of it. A guest that still has an image is named in the error, and
// then all stays; Close may be called again. Once removed, it is nil.
func (i *Images) Close() error {
	if i.lock == nil {
		return nil
	}
	return i.close()
}
