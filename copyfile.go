package holdfast

import (
	"context"
	"errors"
	"os"

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
	r = CopyResult{Source: from.path, Destination: to.path, Method: MethodReadWrite}
	made = madeCopy{folder: to.folder, name: to.name}
	fail := func(op fileOp, err error) (madeCopy, CopyResult) {
		r.Err = copyErrorOf(from.path, to.path, copyFailure(op, err))
		return made, r
	}
	in, err := c.disk.OpenSource(from.folder, from.name)
	if err != nil {
		return fail(opOpen, err)
	}
	defer c.disk.Close(in)
	is, err := c.disk.StatFile(in)
	if err != nil {
		return fail(opStat, err)
	}
	name := to.name
	out, err := -1, error(os.ErrExist)
	if !c.o.Atomic {
		out, err = c.disk.OpenFile(to.folder, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, is.Mode&0o777)
	}
	if errors.Is(err, os.ErrExist) {
		name = temporaryName()
		made.temporary = name
		out, err = c.disk.OpenFile(to.folder, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, is.Mode&0o777)
	}
	if err != nil {
		return fail(opOpen, err)
	}
	p := make([]byte, min(is.Size, 1<<20))
	for at := int64(0); at < is.Size && err == nil; {
		var n int
		if n, err = c.disk.ReadAt(in, p, at); err == nil {
			_, err = c.disk.Write(out, p[:n])
		}
		at += int64(n)
		if err == nil {
			err = ctx.Err()
		}
	}
	r.Size, r.Copied = is.Size, is.Size
	if err == nil && c.o.Archive {
		err = c.disk.Chown(out, is.UID, is.GID)
		names, _ := c.disk.Attributes(in)
		for _, name := range names {
			v, _ := c.disk.Attribute(in, name)
			c.disk.SetAttribute(out, name, v)
		}
	}
	if err == nil {
		err = c.disk.Chmod(out, is.Mode&0o7777)
	}
	if err == nil {
		err = c.disk.SetTimes(out, is.Accessed, is.Modified)
	}
	if err == nil && sync {
		err = c.disk.Sync(out)
	}
	c.disk.Close(out)
	if err != nil {
		c.disk.Remove(to.folder, name)
		return fail(opWrite, err)
	}
	if c.moved != nil {
		c.moved(is.Size)
	}
	return made, r
}

// publish gives a copy its name, if it does not have it. After an error it is discarded.
func (c *copier) publish(m *madeCopy) error {
	if m.temporary == "" {
		return nil
	}
	err := c.disk.Rename(m.folder, m.temporary, m.name)
	if err != nil {
		c.disk.Remove(m.folder, m.temporary)
	}
	return err
}

// discard removes a copy that is not to get its name, or is to lose it.
func (c *copier) discard(m *madeCopy) error {
	if m.temporary == "" {
		return c.disk.Remove(m.folder, m.name)
	}
	return c.disk.Remove(m.folder, m.temporary)
}
