package holdfast

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// Copy copies the regular file src to the file dst, with its permissions and times. It
// follows a symbolic link, as src and as dst. It returns the result, and the result's
// Err again, which is a [*CopyError].
//
// If the error is nil dst holds all that src held, with its holes; and it is durable,
// with its name, if o.Atomic is set or the policy's Sync is not never. A file that was
// there before is replaced by a rename, after all was written: whoever opens dst, and
// also who looks after the process was killed, finds the one or the other. After an
// error, also that of an ended ctx, dst is as it was before, unless the result's
// Outcome is uncertain: then the new file is there and the sync of its folder has failed.
// Without Atomic, a dst that was not there appears while it is being written, and a
// process that is killed leaves a part of it. What can't be removed after an error stays,
// and the error is [ErrLeft] too.
//
// A dst that nobody may write to is replaced as well: it is its folder that has to let us,
// as with any rename. A new file has the access control list that its folder gives to new
// files, unless o.Archive keeps that of src.
//
// Bits that make a program run as its owner or group are kept only by o.Archive. What
// src grew while it was copied is left out; of a file that says it is empty all is taken
// that can be read, as those of /proc are. Room of src behind its end is not kept.
//
// A src that is no regular file is refused, but it was opened for that, without waiting
// and without becoming the terminal of the process: a look at each before would cost the
// regular ones more than all else that is asked of them.
//
// Any number of goroutines may call Copy. It waits for the disk, in steps of some
// megabytes between which it looks at ctx, and up to a minute for another program to give
// back a lease on src.
func Copy(ctx context.Context, dst, src string, o CopyOptions) (CopyResult, error) {
	return copyOne(ctx, sys.Disk{}, dst, src, o)
}

func copyOne(ctx context.Context, d copyDisk, dst, src string, o CopyOptions) (CopyResult, error) {
	began := time.Now()
	c := &copier{disk: d, o: o}
	r := CopyResult{Source: src, Destination: dst}
	r.Err = c.copyTo(ctx, &r)
	r.Elapsed = time.Since(began)
	if o.Each != nil {
		o.Each(r)
	}
	return r, r.Err
}

// copyTo copies one file by its paths, publishes the copy and makes it durable.
func (c *copier) copyTo(ctx context.Context, r *CopyResult) error {
	failed := func(op string, err error) error {
		return &CopyError{Op: op, Source: r.Source, Destination: r.Destination, Offset: -1, Err: err}
	}
	if err := c.o.Validate(); err != nil {
		return failed("refuse", err)
	}
	to, from, err := c.spots(r)
	if err != nil {
		return failed("open", err)
	}
	if to.folder != sys.AtCwd {
		defer c.disk.Close(to.folder) // only names were written
	}
	made, written := c.write(ctx, to, from, c.durable())
	if *r = written; r.Err != nil {
		return r.Err
	}
	return c.nameCopy(&made, r, to.folder, failed)
}

func (c *copier) durable() bool { return c.o.Atomic || c.o.Policy.Sync != SyncNever }

// spots names the two files. The destination's folder is opened if it is to be synced.
func (c *copier) spots(r *CopyResult) (to, from copySpot, err error) {
	to, from = copySpot{folder: sys.AtCwd, path: r.Destination}, copySpot{folder: sys.AtCwd, path: r.Source}
	if from.name, err = sys.NewName(r.Source); err != nil {
		return to, from, err
	}
	if to.name, err = sys.NewName(r.Destination); err != nil || !c.durable() {
		return to, from, err
	}
	folder, base := filepath.Split(r.Destination)
	if base == "" || base == "." || base == ".." {
		return to, from, nil // a folder, which is refused
	}
	name, err := sys.NewName(filepath.Clean(folder))
	if err != nil {
		return to, from, err
	}
	if to.folder, err = c.disk.OpenFolder(name); err != nil {
		return to, from, fmt.Errorf("its folder %s: %w", name, err)
	}
	to.name, err = sys.NewName(base)
	return to, from, err
}

// nameCopy publishes a written copy and syncs its folder.
func (c *copier) nameCopy(made *madeCopy, r *CopyResult, folder int, failed func(string, error) error) error {
	renamed := made.temporary != ""
	if err := c.publish(made); err != nil {
		if renamed && made.temporary != "" {
			return stillThere(failed("rename", err), c.discard(made))
		}
		r.Outcome = OutcomeUncertain
		return failed("sync folder", err)
	}
	r.Outcome = OutcomeWritten
	if !c.durable() {
		return nil
	}
	if !made.elsewhere {
		if err := uninterrupted(func() error { return c.disk.Sync(folder) }); err != nil {
			r.Outcome = OutcomeUncertain
			return failed("sync folder", err)
		}
	}
	r.Outcome, r.Durable = OutcomeDurable, true
	return nil
}

// progressPause is the least time between two calls of Progress.
const progressPause = 50 * time.Millisecond

// progressOf tells Progress how far one file is.
func (c *copier) progressOf(source string, size int64) func(n int64) {
	began := time.Now()
	var told time.Time
	var done int64
	return func(n int64) {
		done += n
		now := time.Now()
		if now.Sub(told) < progressPause {
			return
		}
		told = now
		p := CopyProgress{FilesTotal: 1, Bytes: done, BytesTotal: max(size, done), Listed: true, Elapsed: now.Sub(began), Source: source}
		if s := p.Elapsed.Seconds(); s > 0 && done > 0 {
			p.Rate = float64(done) / s
			p.Left = time.Duration(float64(p.BytesTotal-done) / p.Rate * float64(time.Second))
		}
		c.o.Progress(p)
	}
}
