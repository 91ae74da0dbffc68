package filecopy

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// File copies the regular file src to the file dst, with its permissions and times. It follows a
// symbolic link, as src and as dst. It returns the result, and the result's Err again, or in its
// place a *fs.PathError: see [Error].
//
// If the error is nil, dst holds all bytes of src, with its holes. It is durable, with its name, if
// o.Atomic is set or the policy's Sync is not never. An existing file is replaced by a rename after
// the copy is complete: every open of dst finds the old file or the new one, also after the process
// was killed. After an error, also of an ended ctx, dst is unchanged, unless the result's Outcome
// is uncertain: then the new file is there and the sync of its directory has failed. Without
// Atomic, a new dst is visible while it is being written, and a killed process leaves a part of it.
// A process that is killed while it replaces dst, or with Atomic, may leave a temporary file, whose
// name begins with .holdfast-. The name is random, so that File needs no lock. No call of File
// removes it; [All] removes its own. If a temporary file can't be removed after an error, it stays,
// and the error is [ErrLeftover] too.
//
// A dst without write permission is replaced as well: as with any rename, only its directory must
// permit it.
//
// Without o.Archive dst belongs to the caller. Its permissions let no user read it who could not
// read src, or the earlier dst. It has the permissions of src, with these exceptions. If its group
// is not the group of src, its group and others get the permissions that both had in src. If src
// has an access control list, they get the permissions that each user of the list had. They can
// read a replaced dst only if they could read the earlier one, and the new dst has no list. A dst
// that did not exist has the list that its directory gives to new files, within these permissions.
// Only that list may let others read it. With o.Archive dst has the owner, group, permissions and
// list of src.
//
// The setuid and setgid bits are kept only by o.Archive. Bytes that src gains while it is copied
// are left out. A file that reports a size of 0, such as one in /proc, is copied to its end.
// Allocated space of src after its end is not kept.
//
// A src that is not a regular file is refused. To find that out it is opened, without waiting and
// without becoming the terminal of the process. A stat before each open would cost regular files
// more than all other calls that read their attributes.
//
// Any number of goroutines may call File. It waits for the disk in steps of some megabytes, and
// checks ctx between them. It waits up to a minute for another program to release a lease on src.
func File(ctx context.Context, dst, src string, o Options) (Result, error) {
	return copyOne(ctx, sys.Disk{}, dst, src, o)
}

func copyOne(ctx context.Context, d vfs.CopyDisk, dst, src string, o Options) (Result, error) {
	began := time.Now()
	ctx, calls := guard(ctx, &o, false)
	defer calls.end()
	c := newCopier(d, o)
	r := Result{Source: src, Destination: dst}
	r.Err = c.copyTo(ctx, &r)
	r.Elapsed = time.Since(began)
	if o.Each != nil {
		o.Each(r)
	}
	return r, asPathError(r.Err)
}

// copyTo copies one file by paths, gives the copy its name and makes it durable.
func (c *copier) copyTo(ctx context.Context, r *Result) error {
	failed := func(op string, err error) error {
		return &Error{Op: op, Source: r.Source, Destination: r.Destination, Offset: -1, Err: err}
	}
	if err := c.o.Validate(); err != nil {
		return failed("refuse", err)
	}
	to, from, err := c.spots(r)
	if err != nil {
		return failed("open", err)
	}
	if to.dir != sys.AtCwd {
		defer c.disk.Close(to.dir) // only names were written
	}
	made, written := c.write(ctx, to, from, c.durable())
	if *r = written; r.Err != nil {
		return r.Err
	}
	renamed := made.temporary != ""
	if err := c.publish(&made); err != nil {
		if renamed && made.temporary != "" {
			return stillThere(failed("rename", err), c.discard(&made))
		}
		if c.o.goesOn(r, err) {
			return nil
		}
		r.Outcome = holdfast.OutcomeUncertain
		return failed("sync directory", err)
	}
	r.Outcome = holdfast.OutcomeWritten
	if !c.durable() {
		return nil
	}
	if !made.elsewhere {
		made.noJournal = vfs.LacksJournal(c.disk, to.dir)
		if err := c.syncNames(to.dir); err != nil {
			if c.o.goesOn(r, err) {
				return nil
			}
			r.Outcome = holdfast.OutcomeUncertain
			return failed("sync directory", err)
		}
	}
	r.Outcome, r.Durable, r.NoJournal = holdfast.OutcomeDurable, true, made.noJournal
	return nil
}

// goesOn reports whether a copy counts as a success although its directory could not be synced, and
// notes that in the result.
func (o *Options) goesOn(r *Result, err error) bool {
	if refused := (*durable.RefusedError)(nil); o.Effort != holdfast.Best || !errors.As(err, &refused) {
		return false
	}
	r.Outcome, r.NotKept = holdfast.OutcomeWritten, errors.Join(r.NotKept, &KeepError{"durable name", err})
	return true
}

func (c *copier) durable() bool { return c.o.Atomic || c.o.Policy.Sync.Mode != holdfast.SyncNever }

// spots returns the copySpots of the two files. It opens the destination's directory if that must
// be synced.
func (c *copier) spots(r *Result) (to, from copySpot, err error) {
	to, from = copySpot{dir: sys.AtCwd, path: r.Destination}, copySpot{dir: sys.AtCwd, path: r.Source}
	if from.name, err = sys.NewName(r.Source); err != nil {
		return to, from, err
	}
	if to.name, err = sys.NewName(r.Destination); err != nil || !c.durable() {
		return to, from, err
	}
	dir, base := filepath.Split(r.Destination)
	if base == "" || base == "." || base == ".." {
		return to, from, nil // a directory, which is refused
	}
	name, err := sys.NewName(filepath.Clean(dir))
	if err != nil {
		return to, from, err
	}
	if to.dir, err = c.disk.OpenDir(name); err != nil {
		return to, from, &dirError{name.String(), err}
	}
	to.name, err = sys.NewName(base)
	return to, from, err
}
