package probe

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
	"github.com/holdfast-go/holdfast/internal/sys"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// onImage runs a test, for root, with an ext4 of its own. It is in an image on a loop
// device, mounted on dir with the given options.
func onImage(t *testing.T, options string, test func(t *testing.T, dir string)) {
	t.Helper()
	isolate.Mounts(t, func(t *testing.T) {
		parent := t.TempDir()
		image, dir := filepath.Join(parent, "image"), filepath.Join(parent, "a directory")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(image, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 32<<20); err != nil {
			t.Fatal(err)
		}
		for _, line := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop," + options, image, dir}} {
			if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
				t.Skipf("%s: %v\n%s", line[0], err, out)
			}
		}
		t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
		test(t, dir)
	})
}

// mountOf returns the mount that holds path.
func mountOf(t *testing.T, path string) mounted {
	t.Helper()
	id, err := mountID(path)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := mounts()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(m mounted) bool { return m.ID == id })
	if at < 0 {
		t.Fatalf("mount %d of %s is not in mountinfo", id, path)
	}
	return all[at]
}

// uniqueID returns a number that no earlier mount had (a mount's plain number may be
// used again), or 0 before Linux 6.8.
func uniqueID(t *testing.T, path string) uint64 {
	t.Helper()
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID_UNIQUE, &stat); err != nil {
		t.Fatal(err)
	}
	if stat.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		return 0
	}
	return stat.Mnt_id
}

// refused checks that Remount returns the wanted error, and that the mount is unchanged.
func refused(t *testing.T, dir, want string) {
	t.Helper()
	before := uniqueID(t, dir)
	if err := Remount(dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Remount(%s) = %v, want %q in it", dir, err, want)
	}
	if uniqueID(t, dir) != before {
		t.Errorf("%s was mounted anew", dir)
	}
}

func TestRemountLeavesNothingCached(t *testing.T) {
	for name, options := range map[string]string{
		"defaults": "defaults",
		"many":     "noatime,nosuid,nodev,noexec,nodiratime,sync,dirsync,lazytime,data=ordered,commit=7,errors=continue",
		"strict":   "strictatime,nobarrier",
	} {
		t.Run(name, func(t *testing.T) {
			onImage(t, options, func(t *testing.T, dir string) {
				path := filepath.Join(dir, "sub", "file")
				os.Mkdir(filepath.Dir(path), 0o777)
				const pages = 1000
				f := isolate.NewFile(t, path, pages*os.Getpagesize()+7)
				f.Sync()
				image, err := os.Open(filepath.Join(filepath.Dir(dir), "image"))
				if err != nil {
					t.Fatal(err)
				}
				defer image.Close()
				f.Close()
				hot, err := sys.PageCache(image)
				if err != nil || hot.Resident < pages {
					t.Logf("the image is not in the page cache before: %+v, %v", hot, err)
				}
				before, old := mountOf(t, dir), uniqueID(t, dir)
				if err := Remount(filepath.Dir(path)); err != nil {
					t.Fatal(err)
				}
				// The pages that the mount itself reads from the image are cached again.
				r, err := sys.PageCache(image)
				if err != nil || r.Resident > pages/2 {
					t.Errorf("of the image are resident: %+v, %v", r, err)
				}
				if f, err = os.Open(path); err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if r, err := sys.PageCache(f); err != nil || r.Pages != pages+1 || r.Resident != 0 {
					t.Errorf("of the file are resident: %+v, %v", r, err)
				}
				text, err := io.ReadAll(f)
				if err != nil || string(text) != strings.Repeat("x", pages*os.Getpagesize()+7) {
					t.Errorf("the file has %d other bytes, %v", len(text), err)
				}
				after := mountOf(t, dir)
				if !after.sameAs(before) {
					t.Errorf("mounted as %+v, was %+v", after, before)
				}
				if old != 0 && uniqueID(t, dir) == old {
					t.Error("it was not mounted anew")
				}
			})
		})
	}
}

func TestRemountReadOnly(t *testing.T) {
	onImage(t, "ro", func(t *testing.T, dir string) {
		before := mountOf(t, dir)
		if err := Remount(dir); err != nil {
			t.Fatal(err)
		}
		if after := mountOf(t, dir); !after.sameAs(before) {
			t.Errorf("mounted as %+v, was %+v", after, before)
		}
	})
}

func TestRemountRefusesWhatIsInUse(t *testing.T) {
	onImage(t, "defaults", func(t *testing.T, dir string) {
		f := isolate.NewFile(t, filepath.Join(dir, "file"), 10)
		refused(t, dir, "has a file open there")
		f.Close()
		t.Chdir(dir)
		refused(t, dir, "working directory")
	})
}

func TestRemountRefusesASecondMount(t *testing.T) {
	onImage(t, "defaults", func(t *testing.T, dir string) {
		directory, second := filepath.Join(dir, "directory"), t.TempDir()
		if err := os.Mkdir(directory, 0o777); err != nil {
			t.Fatal(err)
		}
		bind := func(from, to string) {
			t.Helper()
			if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
		}
		bind(directory, second)
		refused(t, dir, "is mounted on "+second+" too")
		refused(t, second, "bind mount of the directory /directory")
		unix.Unmount(second, 0)

		if err := unix.Mount("none", directory, "tmpfs", 0, ""); err != nil {
			t.Skipf("no tmpfs: %v", err)
		}
		refused(t, dir, directory+" is mounted below it")
		unix.Unmount(directory, 0)

		if err := Remount(dir); err != nil {
			t.Error(err)
		}
	})
}

func TestRemountRefusesWhatItCannotRepeat(t *testing.T) {
	onImage(t, "defaults", func(t *testing.T, dir string) {
		set := func(flags uintptr) {
			t.Helper()
			if err := unix.Mount("", dir, "", flags, ""); err != nil {
				t.Fatal(err)
			}
		}
		set(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY)
		refused(t, dir, "read-only")
		set(unix.MS_REMOUNT | unix.MS_BIND)
		set(unix.MS_SHARED)
		refused(t, dir, "shared")
		set(unix.MS_PRIVATE)
		set(unix.MS_UNBINDABLE)
		refused(t, dir, "unbindable")
		set(unix.MS_PRIVATE)
		if err := os.Remove(filepath.Join(filepath.Dir(dir), "image")); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "can't be found")
	})
}

func TestRemountRefusesOtherFileSystems(t *testing.T) {
	refused(t, "/", "root file system")
	if m := mountOf(t, "/proc"); m.Kind == "proc" {
		refused(t, "/proc", "proc has no block device")
	}
	isolate.Mounts(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
			t.Skipf("no tmpfs: %v", err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		refused(t, dir, "tmpfs has no block device")
		if err := Remount(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("err = %v, want ErrNotExist", err)
		}
	})
}

// A mount in another namespace keeps the file system and its cache alive.
func TestRemountSeesOtherNamespaces(t *testing.T) {
	onImage(t, "noatime", func(t *testing.T, dir string) {
		other := exec.Command("cat") // until its standard input ends
		other.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		in, err := other.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Start(); err != nil {
			t.Skip(err)
		}
		before := mountOf(t, dir)
		err = Remount(dir)
		if err == nil || !strings.Contains(err.Error(), "another mount namespace") {
			t.Errorf("err = %v, want one that names the other namespace", err)
		}
		if after := mountOf(t, dir); !after.sameAs(before) {
			t.Errorf("mounted as %+v, was %+v", after, before)
		}
		in.Close()
		other.Wait()
		if err := Remount(dir); err != nil {
			t.Error(err)
		}
	})
}

func TestRemountReportsTheCommand(t *testing.T) {
	onImage(t, "noatime,nodev,commit=7", func(t *testing.T, dir string) {
		before := mountOf(t, dir)
		how, err := mountAgain(before)
		if err != nil {
			t.Fatal(err)
		}
		missing := how
		missing.Source = "/dev/none"
		err = missing.mount()
		if err == nil || !strings.Contains(err.Error(), "is unmounted now") || !strings.Contains(err.Error(), "mount -t ext4 -o ") {
			t.Errorf("err = %v, want the command that brings the mount back", err)
		}
		if err := unix.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("sh", "-c", how.command()).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", how.command(), err, out)
		}
		after := mountOf(t, dir)
		if after.Point != dir || !slices.Equal(after.Options, before.Options) || !slices.Equal(after.Super, before.Super) {
			t.Errorf("%s\nmounts it as %+v, was %+v", how.command(), after, before)
		}
	})
}

func TestRemountTakesRoot(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("this is root")
	}
	if err := tryOptions("ext4", nil); err == nil || !strings.Contains(err.Error(), "root") {
		t.Errorf("err = %v, want one that names root", err)
	}
}

func TestTryOptionsNamesTheOption(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to try mount options takes root")
	}
	err := tryOptions("ext4", []string{"commit=7", "no_such_option"})
	if err == nil {
		t.Skip("this kernel reads the options of ext4 when it mounts")
	}
	if !strings.Contains(err.Error(), "no_such_option") {
		t.Errorf("err = %v, want the option in it", err)
	}
}

func TestRemountRefusesAnOptionWithAComma(t *testing.T) {
	m := mounted{mountinfo.Mount{Super: []string{"ro", "commit=7", "journal_path=/a,b"}}}
	if data, _, err := m.dataAndFlags(); err == nil || !strings.Contains(err.Error(), `"journal_path=/a,b"`) {
		t.Errorf("data = %q, err = %v, want one that names the option", data, err)
	}
	m.Super = m.Super[:2]
	if data, flags, err := m.dataAndFlags(); err != nil || !slices.Equal(data, []string{"commit=7"}) || flags != unix.MS_RDONLY {
		t.Errorf("%q, %x, %v", data, flags, err)
	}
}

func TestQuoted(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		if got := quoted(in); got != want {
			t.Errorf("quoted(%q) = %s, want %s", in, got, want)
		}
	}
	check("/dev/sda1", "/dev/sda1")
	check("", "''")
	check("a directory", "'a directory'")
	check("it's", `'it'\''s'`)
}
