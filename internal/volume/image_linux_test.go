package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImageIsMadeAndChecked needs no kernel that has the file system, and no root.
func TestImageIsMadeAndChecked(t *testing.T) {
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			image := filepath.Join(t.TempDir(), "image")
			err := k.CanMake()
			if k.Type == "tmpfs" {
				if err == nil || !strings.Contains(err.Error(), "is in memory") {
					t.Errorf("of what has no image: %v", err)
				}
				return
			}
			if err != nil {
				t.Skip(err)
			}
			if err := k.MakeImage(t.Context(), image, k.Least); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(image)
			if err != nil || info.Size() != k.Least {
				t.Errorf("the image has %v, %v, want %d bytes", info, err, k.Least)
			}
			if err := k.CheckImage(t.Context(), image); err != nil {
				t.Errorf("the check of a new one: %v", err)
			}
			if k.Check == nil {
				return
			}
			if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			var damage *DamageError
			if err := k.CheckImage(t.Context(), image); !errors.As(err, &damage) {
				t.Errorf("the check of nothing but zeros: %v", err)
			}
		})
	}
}

func TestMakeImageLeavesWhatIsThere(t *testing.T) {
	k, image := kind(t, "ext2"), filepath.Join(t.TempDir(), "image")
	if err := k.CanMake(); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(image, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.MakeImage(t.Context(), image, k.Least); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if text, err := os.ReadFile(image); err != nil || string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
	k.Make = []string{"-no-such-flag"}
	other := image + "2"
	if err := k.MakeImage(t.Context(), other, k.Least); err == nil || !strings.Contains(err.Error(), "mkfs.ext2: exit status") {
		t.Errorf("with a wrong flag: %v", err)
	}
	if _, err := os.Stat(other); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed one is left: %v", err)
	}
}
