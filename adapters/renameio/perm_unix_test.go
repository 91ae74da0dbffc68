//go:build unix

package renameio_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/adapters/renameio"
)

func TestPermissionsAreAsTheOptionsSay(t *testing.T) {
	type options = []renameio.Option
	for _, c := range []struct {
		name    string
		umask   int
		old     fs.FileMode // of the file that is there; 0: none
		options options
		want    fs.FileMode
	}{
		{"none", 0o077, 0, nil, 0o600},
		{"none, and umask takes some", 0o277, 0, nil, 0o400},
		{"none, and there is one", 0o022, 0o644, nil, 0o600},
		{"WithPermissions", 0o022, 0, options{renameio.WithPermissions(0o666)}, 0o644},
		{"IgnoreUmask", 0o077, 0, options{renameio.WithPermissions(0o666), renameio.IgnoreUmask()}, 0o666},
		{"IgnoreUmask alone", 0o277, 0, options{renameio.IgnoreUmask()}, 0o600},
		{"WithStaticPermissions", 0o077, 0o600, options{renameio.WithStaticPermissions(0o654)}, 0o654},
		{"WithExistingPermissions", 0o077, 0o664, options{renameio.WithExistingPermissions()}, 0o664},
		{"WithExistingPermissions without one", 0o022, 0, options{renameio.WithExistingPermissions(), renameio.WithPermissions(0o666)}, 0o644},
		{"WithExistingPermissions before static ones", 0o022, 0o640, options{renameio.WithExistingPermissions(), renameio.WithStaticPermissions(0o755)}, 0o640},
		{"no other bits", 0o022, 0, options{renameio.WithStaticPermissions(fs.ModeSetuid | 0o755)}, 0o755},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if c.old != 0 {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, c.old); err != nil {
					t.Fatal(err)
				}
			}
			defer syscall.Umask(syscall.Umask(c.umask))
			p, err := renameio.NewPendingFile(path, c.options...)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Cleanup()
			fmt.Fprint(p, "new")
			if err := p.CloseAtomicallyReplace(); err != nil {
				t.Fatal(err)
			}
			if is, err := os.Stat(path); err != nil || is.Mode() != c.want {
				t.Errorf("%v, %v; want %v", is.Mode(), err, c.want)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "file")
	defer syscall.Umask(syscall.Umask(0o377)) // a file made under it can't even be written again
	if p, err := renameio.TempFile("", path); err != nil {
		t.Error(err)
	} else if err := p.CloseAtomicallyReplace(); err != nil {
		t.Error(err)
	} else if is, err := os.Stat(path); err != nil || is.Mode() != 0o600 {
		t.Errorf("%v, %v", is, err)
	}
}

// TestALinkIsReplacedItself, and its target stays.
func TestALinkIsReplacedItself(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", path); err != nil {
		t.Fatal(err)
	}
	if err := renameio.WriteFile(path, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if is, err := os.Lstat(path); err != nil || !is.Mode().IsRegular() {
		t.Errorf("%v, %v", is, err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "old" {
		t.Errorf("%q, %v", data, err)
	}
}
