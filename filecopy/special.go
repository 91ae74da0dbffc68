package filecopy

import (
	"errors"
	"io/fs"

	"github.com/holdfast-go/holdfast/internal/permission"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// copySpecial does with a device, a pipe or a socket what the options say.
func (t *copyTree) copySpecial(c copyName) {
	switch t.o.Special {
	case SkipSpecial:
		t.report.skip()
	case KeepSpecial:
		t.link(c, func(r *Result) error { return t.makeSpecial(c, r) })
	default:
		r := c.result()
		r.Err = copyErrorOf(r.Source, r.Destination, copyFailure(opRefuse,
			errors.New(kindName(c.e.Kind)+" holds nothing that could be copied; only files, directories and symbolic links are")))
		t.report.add(refusedCopy, r)
	}
}

func (t *copyTree) makeSpecial(c copyName, r *Result) error {
	disk, ok := t.disk.(vfs.Specials)
	if !ok {
		return copyFailure(opMknod, errors.ErrUnsupported)
	}
	is, err := t.disk.Stat(c.from.Fd, c.e.Name)
	if err != nil {
		return copyFailure(retry.OpStat, err)
	}
	accessed, modified, err := t.disk.TimesIn(c.from.Fd, c.e.Name)
	if err != nil {
		return copyFailure(retry.OpStat, err)
	}
	return t.nameNew(c, opMknod, func(name sys.Name) error {
		if err := disk.MakeLike(c.from.Fd, c.e.Name, c.to.Fd, name); err != nil {
			return copyFailure(opMknod, err)
		}
		r.NotKept = nil
		err := t.archiveLink(c, name, r)
		if err == nil {
			var perm uint32
			if perm, err = t.permOfSpecial(c, name, is); err == nil {
				err = t.o.keep(r, "permissions", disk.ChmodIn(c.to.Fd, name, perm))
			}
			err = copyFailure(retry.OpChmod, err)
		}
		if err == nil {
			err = t.setTimesIn(c, name, r, accessed, modified)
		}
		if err != nil {
			return stillThere(err, t.disk.Remove(c.to.Fd, name))
		}
		return nil
	})
}

// permOfSpecial returns the permissions of a copy, by which nobody may use it who may not use the
// source.
func (t *copyTree) permOfSpecial(c copyName, name sys.Name, was sys.Stat) (uint32, error) {
	is, err := t.disk.Stat(c.to.Fd, name)
	if err != nil {
		return 0, err
	}
	perm := was.Mode & vfs.PermMask
	if t.o.Archive && is.UID == was.UID && is.GID == was.GID {
		return perm, nil
	}
	perm &= allowed
	if list, err := t.copier.attributes.AttributeIn(c.from.Fd, c.e.Name, permission.AccessList); err == nil {
		perm = permission.WithoutList(perm, list)
	}
	if is.GID != was.GID {
		perm = permission.WithoutGroup(perm)
	}
	return perm, nil
}

// leavesOut reports whether Filter leaves a name of a directory out, and counts it then.
func (t *copyTree) leavesOut(n *copyNode, name sys.Name, kind uint32) bool {
	if t.o.Filter == nil {
		return false
	}
	from, to := n.pathOf(atSource, name), n.pathOf(atDestination, name)
	t.report.mu.Lock()
	defer t.report.mu.Unlock()
	if t.o.Filter(from, to, modeOf(kind)) {
		return false
	}
	t.report.totals.Skipped++
	return true
}

// modeOf returns the type bits of a file's kind.
func modeOf(kind uint32) fs.FileMode {
	switch kind {
	case kindDir:
		return fs.ModeDir
	case vfs.KindLink:
		return fs.ModeSymlink
	case 0o010000:
		return fs.ModeNamedPipe
	case 0o140000:
		return fs.ModeSocket
	case 0o020000:
		return fs.ModeDevice | fs.ModeCharDevice
	case 0o060000:
		return fs.ModeDevice
	}
	return 0
}
