package filecopy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// TestADirectoryThatIsMovedLeadsNoCopyElsewhere moves a directory while it is copied. Its ".." is
// another directory then: what has the next one's name there is neither read nor written.
func TestADirectoryThatIsMovedLeadsNoCopyElsewhere(t *testing.T) {
	isolate.Process(t, func(t *testing.T) {
		// Too few descriptors to keep the directories above open.
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}))
		deep := "/" + strings.Repeat("d/", 30)
		for _, side := range []string{"from", "to"} {
			dir := t.TempDir()
			for _, name := range []string{"x", "y"} {
				must(t, os.MkdirAll(dir+"/from/a/"+name+deep, 0o755), os.WriteFile(dir+"/from/a/"+name+deep+"file", nil, 0o644))
				must(t, os.MkdirAll(dir+"/other/"+name, 0o755), os.WriteFile(dir+"/other/"+name+"/secret", nil, 0o644))
			}
			second := ""
			o := Options{Workers: 1, KeepGoing: true, Each: func(r Result) {
				if second != "" || !strings.HasSuffix(r.Source, "/file") {
					return
				}
				first := "x"
				if second = "y"; strings.HasPrefix(r.Source, dir+"/from/a/y/") {
					first, second = "y", "x"
				}
				must(t, os.RemoveAll(dir+"/other/"+first), os.Rename(dir+"/"+side+"/a/"+first, dir+"/other/"+first))
			}}
			if _, err := All(t.Context(), onePair(dir+"/to", dir+"/from"), o); err != nil {
				t.Errorf("%s: %v", side, err)
			}
			if _, err := os.Stat(dir + "/to/a/" + second + deep + "file"); second == "" || err != nil {
				t.Errorf("%s: the directory behind it was not copied: %v", side, err)
			}
			for _, name := range []string{"/to/a/" + second + "/secret", "/other/" + second + "/d"} {
				if _, err := os.Lstat(dir + name); err == nil {
					t.Errorf("%s: there is %s", side, name)
				}
			}
		}
	})
}

// A movingDisk moves a directory when its ".." is asked for.
type movingDisk struct {
	sys.Disk
	move func(dir int)
}

func (d *movingDisk) OpenDirIn(dir int, name sys.Name) (int, error) {
	if move := d.move; name == dirAboveName && move != nil {
		d.move = nil
		move(dir)
	}
	return d.Disk.OpenDirIn(dir, name)
}

// TestNothingElsewhereIsCountedAhead is the same for the walk that counts the files ahead.
func TestNothingElsewhereIsCountedAhead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"/from/x", "/from/y", "/other/x", "/other/y"} {
		must(t, os.MkdirAll(dir+name, 0o755), os.WriteFile(dir+name+"/file", nil, 0o644))
	}
	d := &movingDisk{move: func(fd int) {
		at, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
		to := dir + "/other/" + filepath.Base(at)
		must(t, err, os.RemoveAll(to), os.Rename(at, to))
	}}
	a := &copyAhead{t: &copyTree{ctx: t.Context(), disk: d}, buf: make([]byte, namesBuffer)}
	if whole := a.tree(dir + "/from"); whole || a.files.Load() != 1 || d.move != nil {
		t.Errorf("%d files, whole: %v", a.files.Load(), whole)
	}
}

// An uncountedDisk lets nothing be counted ahead: it reports no file that was not opened, and
// no way back.
type uncountedDisk struct{ sys.Disk }

func (d uncountedDisk) Stat(dir int, name sys.Name) (sys.Stat, error) {
	is, err := d.Disk.Stat(dir, name)
	if err == nil && is.Mode&vfs.KindMask == vfs.KindRegular {
		err = syscall.ENOENT
	}
	return is, err
}

func (d uncountedDisk) OpenDirIn(dir int, name sys.Name) (int, error) {
	if name == dirAboveName {
		return -1, syscall.EACCES
	}
	return d.Disk.OpenDirIn(dir, name)
}

// TestTotalsAreNeverLessThanWhatIsDone: the files may grow in number and size after they were counted.
func TestTotalsAreNeverLessThanWhatIsDone(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/from/sub", 0o755), os.WriteFile(dir+"/from/sub/one", []byte("text"), 0o644), os.WriteFile(dir+"/from/two", []byte("text"), 0o644))
	var last Progress
	_, err := copyTrees(t.Context(), uncountedDisk{}, onePair(dir+"/to", dir+"/from"), Options{Progress: func(p Progress) { last = p }})
	if err != nil || last.Files != 2 || last.FilesTotal != 2 || last.Bytes != 8 || last.BytesTotal != 8 || !last.Listed {
		t.Errorf("%+v, %v", last, err)
	}
}
