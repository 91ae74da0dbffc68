package study

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

func TestTheTrialOfAReflinkLeavesNothing(t *testing.T) {
	g, err := trial.OpenWorkDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	why := noReflink(g)
	left, err := os.ReadDir(g.Dir())
	if err != nil || len(left) > 0 {
		t.Errorf("the trial of a reflink has left %v; %v", left, err)
	}
	if g.FileSystem == "ext2/ext3/ext4" && !strings.Contains(why, "can't share their bytes") {
		t.Errorf("on %s: %q", g.FileSystem, why)
	}
}
