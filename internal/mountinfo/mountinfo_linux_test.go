package mountinfo

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// hostile is a name with all that is written otherwise than it is, or that is
// taken for the end of a field.
const hostile = "a b\tc\nd\\e#f\u00a0g\fh,é\u0085\v\\040 - - "

// mounted mounts for root on a new directory, and finds the mount again.
func mounted(t *testing.T, name string, mount func(point string) error) Mount {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("to mount takes root")
	}
	// A mount on a private one reaches no other mount namespace.
	ground := t.TempDir()
	if err := unix.Mount("holdfast-test", ground, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(ground, unix.MNT_DETACH) })
	if err := unix.Mount("", ground, "", unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	point := filepath.Join(ground, name)
	if err := os.Mkdir(point, 0o777); err != nil {
		t.Fatal(err)
	}
	err := mount(point)
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
		t.Skipf("this kernel does not mount it: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(point, unix.MNT_DETACH) })
	all, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(m Mount) bool { return m.Point == point })
	if at < 0 {
		t.Fatalf("%q is not in the list: %+v", point, all)
	}
	return all[at]
}

func TestReadFindsAMountWithAHostileName(t *testing.T) {
	m := mounted(t, hostile, func(point string) error {
		return unix.Mount(hostile, point, "tmpfs", unix.MS_NOATIME, "size=1m")
	})
	if m.Source != hostile || m.Root != "/" || m.Kind != "tmpfs" || !slices.Contains(m.Options, "noatime") || !slices.Contains(m.Super, "size=1024k") {
		t.Errorf("%+v", m)
	}
}

func TestReadFindsABindMountOfADirectoryWithAHostileName(t *testing.T) {
	m := mounted(t, "point", func(point string) error {
		dir := filepath.Join(filepath.Dir(point), hostile)
		return errors.Join(os.Mkdir(dir, 0o777), unix.Mount(dir, point, "", unix.MS_BIND, ""))
	})
	if m.Root != "/"+hostile {
		t.Errorf("root = %q", m.Root)
	}
}

func TestReadFindsAMountOfNothing(t *testing.T) {
	m := mounted(t, "point", func(point string) error { return unix.Mount("", point, "tmpfs", 0, "size=1m") })
	if m.Source != "" || m.Kind != "tmpfs" {
		t.Errorf("%+v", m)
	}
}

func TestReadKeepsACommaInAnOption(t *testing.T) {
	m := mounted(t, "point", func(point string) error {
		ground := filepath.Dir(point)
		for _, dir := range []string{"lower", "up, per", "work"} {
			if err := os.Mkdir(filepath.Join(ground, dir), 0o777); err != nil {
				return err
			}
		}
		return unix.Mount("overlay", point, "overlay", 0, "lowerdir="+ground+"/lower,upperdir="+ground+`/up\, per,workdir=`+ground+"/work")
	})
	// overlay was given the first backslash.
	if want := "upperdir=" + filepath.Dir(m.Point) + `/up\, per`; !slices.Contains(m.Super, want) {
		t.Errorf("no %q in %q", want, m.Super)
	}
}

// Every line that this kernel writes is read, and written back as it was. Only what a
// file system escapes, or leaves, in its own way may differ.
func TestReadReadsWhatIsMountedHere(t *testing.T) {
	text, err := os.ReadFile(Path)
	if err != nil {
		t.Skip(err)
	}
	all, err := ParseAll(string(text))
	if err != nil || len(all) == 0 {
		t.Fatalf("%d mounts, %v", len(all), err)
	}
	for _, m := range all {
		if again, err := Parse(printed(m)); err != nil || again.Point != m.Point || !slices.Equal(again.Super, m.Super) {
			t.Errorf("%+v, %v; want %+v", again, err, m)
		}
	}
}
