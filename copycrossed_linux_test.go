package holdfast

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A mountedDisk is this machine's, where some folders have others mounted on them.
type mountedDisk struct {
	sys.Disk
	on map[fileID]string // the folder that is seen, by the one that is there
}

func (d *mountedDisk) OpenFolderIn(folder int, name sys.Name) (int, error) {
	fd, err := d.Disk.OpenFolderIn(folder, name)
	if err != nil {
		return fd, err
	}
	is, err := d.Disk.StatFD(fd)
	path, ok := d.on[idOf(is)]
	if err != nil || !ok || name == folderAboveName {
		return fd, err
	}
	d.Disk.Close(fd)
	return d.Disk.OpenFolder(sys.Name(path + "\x00"))
}

func (d *mountedDisk) StatFolder(fd int) (sys.FolderStat, error) {
	is, err := d.Disk.StatFolder(fd)
	for _, path := range d.on {
		on, _ := d.Disk.StatPath(sys.Name(path + "\x00"))
		is.Mounted = is.Mounted || idOf(on).is(idOf(is.Stat))
	}
	return is, err
}

// TestCrossedMountsEndWithoutRoot is that of real mounts, on a disk that makes them up.
func TestCrossedMountsEndWithoutRoot(t *testing.T) {
	folder := t.TempDir()
	d := &mountedDisk{on: map[fileID]string{}}
	for at, what := range map[string]string{"/from/a/m": "/to/b", "/from/b/m": "/to/a"} {
		for _, name := range []string{at, what + "/m"} {
			told(t, os.MkdirAll(folder+name, 0o755))
		}
		is, err := d.Disk.StatPath(sys.Name(folder + at + "\x00"))
		told(t, err)
		d.on[idOf(is)] = folder + what
	}
	totals, err := copyTrees(context.Background(), d, onePair(folder+"/to", folder+"/from"), CopyOptions{KeepGoing: true, Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "copied into itself") || totals.Failed != 1 {
		t.Errorf("%+v, %v", totals, err)
	}
}
