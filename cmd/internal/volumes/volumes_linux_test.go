package volumes

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

// leftVolume plants what a killed run has left, with something in the directory of its mount.
func leftVolume(t *testing.T) (parent, mine string) {
	t.Helper()
	parent = t.TempDir()
	dir := filepath.Join(parent, "holdfast-volume-000000070155ac0f")
	mine = filepath.Join(dir, "mount", "mine")
	if err := os.MkdirAll(filepath.Dir(mine), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{mine: "mine", filepath.Join(dir, "volume.json"): `{"kind":"ext4","process":1}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return parent, mine
}

// cleanIn runs volumes --clean, and returns its exit code and output.
func cleanIn(ctx context.Context, parent string) (code int, stderr string) {
	var out bytes.Buffer
	err := cli.Run(ctx, New(), []string{"--clean", parent}, nil, &out, &out)
	code = cli.Report(&out, err)
	return code, out.String()
}

func TestCleanReportsWhatItCantRemove(t *testing.T) {
	parent, mine := leftVolume(t)
	if code, stderr := cleanIn(t.Context(), parent); code != cli.ExitCannot || strings.Contains(stderr, "removed") || !strings.Contains(stderr, "not empty") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	if code, stderr := cleanIn(t.Context(), parent); code != cli.ExitOK || !strings.Contains(stderr, "removed "+parent) || strings.Contains(stderr, "nothing is left") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestCleanThatIsInterruptedRemovesNothingMore(t *testing.T) {
	parent, mine := leftVolume(t)
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, stderr := cleanIn(ctx, parent); code != cli.ExitInterrupted {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Dir(mine)); err != nil {
		t.Error(err)
	}
}
