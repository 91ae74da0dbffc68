package usermode

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
)

func TestMissingKernelIsRefusedWithItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Kernel{}.Order(t.Context(), place.Wish{}, &study.Choice{Preset: study.Quick()})
	var r *cli.Refusal
	if !errors.As(err, &r) || r.Code != cli.ExitCannot || !strings.Contains(r.Hint, "apt-get install user-mode-linux") {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(Kernel{}.Packages(t.Context(), nil), " "); got != "user-mode-linux" {
		t.Errorf("missing are %q", got)
	}
}
