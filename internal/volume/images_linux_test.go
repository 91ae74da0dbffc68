package volume

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestImagesOfAKilledRunAreRemovedOnceTheirGuestHasEnded plants what a guest's kernel
// has beside its images, and a program that stands for the kernel.
func TestImagesOfAKilledRunAreRemovedOnceTheirGuestHasEnded(t *testing.T) {
	parent := t.TempDir()
	images, err := NewImages(parent)
	if err != nil {
		t.Fatal(err)
	}
	boot := filepath.Join(images.Dir(), GuestPrefix+"1")
	plantFiles(t, filepath.Join(images.Dir(), ImageName("jfs")), filepath.Join(boot, "initramfs"), filepath.Join(boot, "guest", "pid"))
	if err := RemoveLeftover(images.Dir()); !errors.Is(err, ErrAlive) {
		t.Errorf("of a living run: %v", err)
	}
	if err := images.lock.Close(); err != nil { // as a kill does
		t.Fatal(err)
	}
	kernel := exec.Command("cat")
	kernel.Dir = boot
	stdin, err := kernel.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := kernel.Start(); err != nil {
		t.Fatal(err)
	}
	if err := RemoveLeftover(images.Dir()); err == nil || !strings.Contains(err.Error(), "cat (process ") {
		t.Errorf("of a living guest: %v", err)
	}
	if err := errors.Join(stdin.Close(), kernel.Wait()); err != nil {
		t.Fatal(err)
	}
	next, err := NewImages(parent)
	if err != nil || len(next.Removed) != 1 {
		t.Fatalf("the next run removed %v; %v", next.Removed, err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left: %v; %v", left, err)
	}
}

// TestWhatNoGuestHasMadeIsNotTouched puts another file among a guest's.
func TestWhatNoGuestHasMadeIsNotTouched(t *testing.T) {
	images, err := NewImages(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	letter := filepath.Join(images.Dir(), GuestPrefix+"1", "letter")
	plantFiles(t, letter)
	if err := images.lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := RemoveLeftover(images.Dir()); err == nil || !strings.Contains(err.Error(), "does not belong to a volume") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(letter); err != nil {
		t.Error(err)
	}
}

// plantFiles makes files with their directories.
func plantFiles(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("planted"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
