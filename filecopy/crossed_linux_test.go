package filecopy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A mountedDisk is this machine's, where some directories have others mounted on them.
type mountedDisk struct {
	sys.Disk
	on     map[fileID]string // the directory that is seen, by the real one
	silent bool              // it does not report where something is mounted, as before Linux 5.8
	made   int
}

// newMountedDisk makes directories, and mounts others on them.
func newMountedDisk(t *testing.T, mounts map[string]string) *mountedDisk {
	t.Helper()
	d := &mountedDisk{on: map[fileID]string{}}
	for at, what := range mounts {
		must(t, os.MkdirAll(at, 0o755))
		is, err := d.Disk.StatPath(sys.Name(at + "\x00"))
		must(t, err)
		d.on[idOf(is)] = what
	}
	return d
}

// MkdirIn ends what would have no end.
func (d *mountedDisk) MkdirIn(dir int, name sys.Name, perm uint32) error {
	if d.made++; d.made > 20 {
		return syscall.ENOSPC
	}
	return d.Disk.MkdirIn(dir, name, perm)
}

func (d *mountedDisk) OpenDirIn(dir int, name sys.Name) (int, error) {
	fd, err := d.Disk.OpenDirIn(dir, name)
	if err != nil {
		return fd, err
	}
	is, err := d.Disk.StatFD(fd)
	path, ok := d.on[idOf(is)]
	if err != nil || !ok || name == dirAboveName {
		return fd, err
	}
	d.Disk.Close(fd)
	return d.Disk.OpenDir(sys.Name(path + "\x00"))
}

func (d *mountedDisk) StatDir(fd int) (sys.DirStat, error) {
	is, err := d.Disk.StatDir(fd)
	if d.silent {
		is.Mounted = false
		return is, err
	}
	for _, path := range d.on {
		on, _ := d.Disk.StatPath(sys.Name(path + "\x00"))
		is.Mounted = is.Mounted || idOf(on).is(idOf(is.Stat))
	}
	return is, err
}

// TestCrossedMountsEndWithoutRoot is the test of real mounts on a disk that simulates them.
func TestCrossedMountsEndWithoutRoot(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"/to/a/m", "/to/b/m"} {
		must(t, os.MkdirAll(dir+name, 0o755))
	}
	d := newMountedDisk(t, map[string]string{dir + "/from/a/m": dir + "/to/b", dir + "/from/b/m": dir + "/to/a"})
	copiedIntoItself(t, d, dir+"/to", dir+"/from")
}

func copiedIntoItself(t *testing.T, d *mountedDisk, to, from string) {
	t.Helper()
	totals, err := copyTrees(context.Background(), d, onePair(to, from), Options{KeepGoing: true, Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed != 1 {
		t.Errorf("%+v, %v", totals, err)
	}
}

// TestMountsThatAreNotReportedEndToo is of kernels that report no mounts: by the device, and
// by a directory that is met in its own copy.
func TestMountsThatAreNotReportedEndToo(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/to/a", 0o755))
	d := newMountedDisk(t, map[string]string{dir + "/from/a/m": dir + "/to/a"})
	d.silent = true
	copiedIntoItself(t, d, dir+"/to", dir+"/from")

	from, to := t.TempDir(), dirInMemory(t)
	here, err := d.Disk.StatPath(sys.Name(from + "\x00"))
	must(t, err)
	there, err := d.Disk.StatPath(sys.Name(to + "\x00"))
	must(t, err)
	if here.Device == there.Device {
		t.Skip("there is one file system only")
	}
	for _, name := range []string{"/to/a/m", "/to/b/m"} {
		must(t, os.MkdirAll(to+name, 0o755))
	}
	d = newMountedDisk(t, map[string]string{from + "/from/a/m": to + "/to/b", from + "/from/b/m": to + "/to/a"})
	d.silent = true
	copiedIntoItself(t, d, to+"/to", from+"/from")
}

func TestADirectoryThatIsNamedByAMountInItselfIsCopied(t *testing.T) {
	dir := t.TempDir()
	d := newMountedDisk(t, map[string]string{dir + "/from/m": dir + "/from"})
	must(t, os.WriteFile(dir+"/from/file", []byte("text"), 0o644))
	totals, err := copyTrees(t.Context(), d, onePair(dir+"/to", dir+"/from/m"), Options{KeepGoing: true, Workers: 1})
	if totals.Files != 1 || totals.Failed != 1 || err == nil || !strings.Contains(err.Error(), "mounted in itself") {
		t.Errorf("%+v, %v", totals, err) // the mount that is in it is refused
	}
}

func TestASourceMayBeWrittenToByALaterPair(t *testing.T) {
	dir := dirInMemory(t)
	for _, name := range []string{"up/from", "other/from"} {
		must(t, os.MkdirAll(dir+"/"+name, 0o755))
		must(t, os.WriteFile(dir+"/"+name+"/"+filepath.Dir(name), []byte("text"), 0o644))
	}
	pairs := func(yield func(string, string) bool) {
		_ = yield(dir+"/to", dir+"/up/from") && yield(dir+"/up", dir+"/other")
	}
	if totals, err := copyTrees(t.Context(), sys.Disk{}, pairs, Options{Workers: 1}); err != nil || totals.Files != 2 {
		t.Errorf("%+v, %v", totals, err)
	}
}

func TestTheDestinationOfALaterPairIsNoSource(t *testing.T) {
	dir := dirInMemory(t)
	for _, name := range []string{"from/sub", "other"} {
		must(t, os.MkdirAll(dir+"/"+name, 0o755))
		must(t, os.WriteFile(dir+"/"+name+"/file", []byte("text"), 0o644))
	}
	pairs := func(yield func(string, string) bool) {
		_ = yield(dir+"/to", dir+"/from") && yield(dir+"/from/sub", dir+"/other")
	}
	totals, err := copyTrees(t.Context(), sys.Disk{}, pairs, Options{Workers: 1, KeepGoing: true})
	if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed != 1 || totals.Files != 1 {
		t.Errorf("%+v, %v", totals, err)
	}
}

func TestCrossingsForgetWhatIsDone(t *testing.T) {
	var c overlap
	above, root := &copyNode{}, &copyRoot{}
	above.sides[atSource].is, above.sides[atDestination].is = fileID{1, 1}, fileID{1, 1}
	node := func() *copyNode {
		n := &copyNode{above: above, root: root}
		n.sides[atSource].is = fileID{1, 2}
		return n
	}
	one, other, made := node(), node(), &copyNode{above: above, root: root}
	made.sides[atDestination].is = fileID{1, 2}
	must(t, errors.Join(c.enter(one, atSource, false), c.enter(other, atSource, false)))
	for range 2 {
		c.leave(one)
	}
	if err := c.enter(made, atDestination, true); !errors.Is(err, errIntoItself) {
		t.Errorf("while one of two copies it: %v", err)
	}
	if err := c.enter(made, atDestination, false); err != nil {
		t.Errorf("where nothing is mounted: %v", err) // the destination of one pair is the source of another
	}
	c.leave(made)
	if c.leave(other); len(c.under[atSource]) != 0 {
		t.Errorf("%v are being copied", c.under)
	}
	if err := c.enter(made, atDestination, true); err != nil {
		t.Errorf("when it is copied: %v", err)
	}
}

func TestAnUnknownDirectoryIsNoWayIn(t *testing.T) {
	var c overlap
	c.addEntry(fileID{})
	c.addEntry(fileID{1, 2})
	if c.isEntry(fileID{}) || !c.isEntry(fileID{1, 2}) || c.isEntry(fileID{1, 3}) {
		t.Error(c.entries)
	}
}
