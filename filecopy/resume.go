package filecopy

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/temporary"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

const (
	// resumeFrom is the least size of a file worth resuming.
	resumeFrom = 1 << 20

	partialSuffix = ".holdfast-partial"
	longestName   = 255 // bytes: NAME_MAX of Linux and of its file systems
	resumeBlock   = 4 << 10
)

// resumes reports whether an interrupted copy is kept.
func (j *copyJob) resumes() bool { return j.o.Resume && j.was.Size >= resumeFrom }

// partialName returns the name of an unfinished copy: hidden, and derived from the final name.
func partialName(name sys.Name) sys.Name {
	base := filepath.Base(name.String())
	partial := "." + base + partialSuffix
	if len(partial) > longestName {
		partial = temporary.Prefix + digest(base) + partialSuffix
	}
	return beside(name, sys.Name(partial+"\x00"))
}

func digest(base string) string {
	sum := fnv.New64a()
	sum.Write([]byte(base))
	return strconv.FormatUint(sum.Sum64(), 36)
}

// openPartial opens the partial file of an interrupted copy, or makes it.
func (j *copyJob) openPartial() error {
	j.made.temporary, j.made.partial = partialName(j.made.name), true
	err := j.create(j.made.temporary)
	if errors.Is(err, syscall.ENAMETOOLONG) {
		// Some file systems have short names: minix has 30 bytes.
		j.made.temporary = beside(j.made.name, sys.Name(temporary.Prefix+"p-"+digest(filepath.Base(j.made.name.String()))+"\x00"))
		err = j.create(j.made.temporary)
	}
	switch {
	case err == nil:
		if err := j.lookAtCopy(); err != nil {
			j.disk.Close(j.out) // it was removed
			return j.undo(err)
		}
	case errors.Is(err, fs.ErrExist):
		if err := j.openOld(); err != nil {
			return err
		}
	default:
		return j.failed("create", -1, err)
	}
	if err := j.lockPartial(); err != nil {
		j.disk.Close(j.out) // nothing was written to it
		return err
	}
	return nil
}

// lockPartial locks the file against other copies, if the file system has locks. Another copy may
// have completed and renamed it since it was opened.
func (j *copyJob) lockPartial() error {
	err := sys.Uninterrupted(func() error { return j.disk.Lock(j.out) })
	if errors.Is(err, syscall.EAGAIN) {
		err = fmt.Errorf("another copy is at work on %s; wait for it: %w", filepath.Base(j.made.temporary.String()), err)
	}
	if err != nil && !cannot(err) && !errors.Is(err, syscall.ENOLCK) {
		return j.failed("lock", -1, err)
	}
	is, err := j.statAs(j.made.temporary)
	if err == nil && (is.Inode != j.has.Inode || is.Device != j.has.Device) {
		err = errReplaced
	}
	if err != nil {
		return j.failed("stat", -1, err)
	}
	return nil
}

var errReplaced = errors.New("another copy has finished it or put another in its place meanwhile; copy again")

// openOld opens an existing partial file, if it is a regular file with one name.
func (j *copyJob) openOld() error {
	name := j.made.temporary
	is, err := j.statAs(name)
	if err != nil {
		return j.failed("stat", -1, err)
	}
	if is.Mode&vfs.KindMask != vfs.KindRegular || is.Links != 1 {
		return j.notOurs("can't be part of a copy")
	}
	if !j.mayOwn(is.UID) {
		return j.notOurs(fmt.Sprintf("belongs to user %d, who could write to it later", is.UID))
	}
	err = sys.Uninterrupted(func() (err error) {
		j.out, err = j.disk.OpenFile(j.made.dir, name, os.O_RDWR, 0)
		return err
	})
	if err != nil {
		return j.failed("create", -1, err)
	}
	j.has, err = j.stat(j.out)
	j.looked = err == nil
	if err == nil && (j.has.Inode != is.Inode || j.has.Device != is.Device) {
		err = errReplaced
	}
	if err != nil {
		j.disk.Close(j.out) // nothing was written to it
		return j.failed("stat", -1, err)
	}
	return nil
}

// mayOwn reports whether a partial copy belongs to the caller, or to the user who gets the copy.
// Any other user may have put it there, to own the result.
func (j *copyJob) mayOwn(uid uint32) bool {
	self := os.Geteuid() // -1: the system has no user numbers
	return self < 0 || uid == uint32(self) || j.o.Archive && uid == j.was.UID
}

func (j *copyJob) notOurs(why string) error {
	partial := j.made.temporary.String()
	if j.made.dir != sys.AtCwd {
		partial = filepath.Join(filepath.Dir(j.to.path), partial)
	}
	return j.refused("%s %s; remove %[1]s and copy again, or leave Resume out", partial, why)
}

// resume compares an earlier partial copy with the source's beginning, and cuts it off at the first
// difference.
func (j *copyJob) resume() error {
	if !j.made.partial || j.has.Size == 0 {
		return nil
	}
	j.done = min(j.has.Size, j.was.Size) // the prefix stays, even after an error
	proven, err := j.firstDifference(j.done)
	if err != nil {
		return err
	}
	if proven < 0 {
		proven = j.done
	} else {
		proven -= proven % resumeBlock
	}
	if proven == 0 {
		if cut, err := j.isCut(); err != nil {
			return err
		} else if !cut {
			return j.notOurs("is not the beginning of the source")
		}
	}
	j.done = 0
	j.progress(proven)
	j.r.Resumed = proven
	return j.truncate(proven)
}

// isCut reports whether the first block of a partial copy has nothing but sectors of the source and zeros. A power cut leaves that of
// a file whose size was on the disk before its bytes.
func (j *copyJob) isCut() (bool, error) {
	const sector = 512
	source, copied := make([]byte, resumeBlock), make([]byte, resumeBlock)
	if got, err := j.readFull(j.in, source, 0); err != nil {
		return false, j.failed("read", int64(got), err)
	}
	got, err := j.readFull(j.out, copied, 0)
	if err != nil {
		return false, j.failed("read back", int64(got), err)
	}
	zeros := make([]byte, sector)
	for at := 0; at < got; at += sector {
		end := min(at+sector, got)
		if !bytes.Equal(copied[at:end], source[at:end]) && !bytes.Equal(copied[at:end], zeros[:end-at]) {
			return false, nil
		}
	}
	return true, nil
}
