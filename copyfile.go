package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A copySpot is a file by its name in an open folder, which may be sys.AtCwd: then the
// name is a path. The path is for words, and to follow a symbolic link.
type copySpot struct {
	folder int
	name   sys.Name
	path   string
}

// A copier copies files, any number at a time.
type copier struct {
	disk copyDisk
	o    CopyOptions

	// moved, if there is one, is told of bytes of data and holes that are done, by the
	// goroutine that copies them.
	moved func(n int64)
}

// A madeCopy is a file that was written and may have to get its name yet.
type madeCopy struct {
	folder    int      // of the names; sys.AtCwd: they are paths
	name      sys.Name // what it is, or is to be, named
	temporary sys.Name // what it is named; "": name
	replaces  bool     // there is a file of that name

	// elsewhere: the destination was a symbolic link, and the folder whose names are to be
	// synced is the one where that leads. publish does that if the copy was synced.
	elsewhere bool
	synced    bool
}

// write copies a file and gives it its permissions and times, up to its name if it is
// one that publish has to give. It syncs the file if sync says so, or the options do by
// Atomic or Verify; with Verify it is also read back. It fills in the result but for
// Durable and the Outcome after publish. After an error nothing is left of it, unless
// the options say that it may be resumed.
func (c *copier) write(ctx context.Context, to, from copySpot, sync bool) (made madeCopy, r CopyResult) {
	panic("not yet")
}

// publish gives a copy its name, if it does not have it. After an error it is discarded.
func (c *copier) publish(m *madeCopy) error { panic("not yet") }

// discard removes a copy that is not to get its name, or is to lose it.
func (c *copier) discard(m *madeCopy) error { panic("not yet") }
