package place

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// TestADirectoryHasASlash of either kind where the system has two, and a file system's name has none.
func TestADirectoryHasASlash(t *testing.T) {
	f, kinds := pflag.NewFlagSet("", pflag.ContinueOnError), []volume.Kind(nil)
	FileSystemsFlag(f, &kinds)
	dir := t.TempDir()
	if err := f.Parse([]string{"--fs", filepath.ToSlash(dir) + ",ext4"}); err != nil || len(kinds) != 2 || kinds[0].Dir != dir || kinds[1].Name != "ext4" {
		t.Errorf("%+v, %v", kinds, err)
	}
}

func TestCannotOpenNamesTheQuota(t *testing.T) {
	var r *cli.Refusal
	for _, full := range []error{syscall.EDQUOT, syscall.ENOSPC} {
		if err := CannotOpen("here", full); !errors.As(err, &r) || r.Code != cli.ExitCannot || r.Hint != HintRoom {
			t.Errorf("%v: refused with %v", full, err)
		}
	}
}
