package lines

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// TestEachArmHasTheLines runs each arm once.
func TestEachArmHasTheLines(t *testing.T) {
	s, err := newSite(t.TempDir(), 300_000)
	if err != nil {
		t.Fatal(err)
	}
	built := errors.New("it is not built in short tests")
	if !testing.Short() {
		built = command.Build(t.Context(), s.root)
	}
	for _, g := range groups() {
		for _, a := range g.Arms {
			t.Run(g.Name+"/"+a.Name, func(t *testing.T) {
				if strings.HasPrefix(a.Name, "holdfast") && built != nil {
					t.Skip(built)
				}
				took, err := s.try(t.Context(), a.Do, g.Job)
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil || took.Elapsed <= 0 || took.Units != s.lines {
					t.Errorf("took %+v, %v", took, err)
				}
			})
		}
	}
	left, err := os.ReadDir(s.root)
	if err != nil || len(left) > 2 {
		t.Errorf("trials left %v, %v", left, err)
	}
}

func TestWrongLinesDoNotCount(t *testing.T) {
	s, err := newSite(t.TempDir(), 10_000)
	if err != nil {
		t.Fatal(err)
	}
	check := func(script, says string) {
		t.Helper()
		_, err := s.try(t.Context(), program{args: []string{"sh", "-c", script}}, false)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", script, err)
		}
	}
	check("tail -n +2 > DIR/log", "log has not its lines")
	check("cat > DIR/log; echo > DIR/more", "2 files, not 1")
	check("echo no room >&2; exit 3", "exit status 3: no room")
	if err := verify(filepath.Join(s.root, "none"), s.of); err == nil {
		t.Error("files that are not there are right")
	}
}
