package filecopy

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// An openingDisk notes with which permissions files are made.
type openingDisk struct {
	sys.Disk
	perms []uint32
}

func (d *openingDisk) OpenFile(dir int, name sys.Name, flag int, perm uint32) (int, error) {
	fd, err := d.Disk.OpenFile(dir, name, flag, perm)
	if err == nil {
		d.perms = append(d.perms, perm)
	}
	return fd, err
}

// TestACopyIsMadeNoWiderThanItWillBe copies a file of another group: whoever opens the copy
// before it has its permissions could read all that is written later.
func TestACopyIsMadeNoWiderThanItWillBe(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	for _, old := range []bool{false, true} {
		dir := t.TempDir()
		must(t, os.WriteFile(dir+"/src", []byte("a secret"), 0o600))
		must(t, os.Chown(dir+"/src", 0, 2000))
		must(t, unix.Chmod(dir+"/src", 0o664))
		if old {
			must(t, os.WriteFile(dir+"/dst", []byte("old"), 0o600))
		}
		d := &openingDisk{}
		_, err := copyOne(context.Background(), d, dir+"/dst", dir+"/src", Options{})
		is, _ := os.Stat(dir + "/dst")
		if err != nil || len(d.perms) != 1 || d.perms[0]&^uint32(is.Mode().Perm()) != 0 {
			t.Errorf("made with %#o, and then %v: %v", d.perms, is.Mode(), err)
		}
	}
}
