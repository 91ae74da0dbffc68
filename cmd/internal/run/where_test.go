package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/volume"
)

var errStarted = errors.New("the other kernel was asked")

// An other is a kernel that had the runs on a file system of this name.
type other string

func (o other) Name() string                                     { return "other" }
func (o other) Packages(context.Context, []volume.Kind) []string { return []string{"of-the-other"} }

func (o other) Had(h result.Header) bool {
	return len(h.Cells) > 0 && h.Cells[0].FileSystem == string(o)
}

func (o other) Order(context.Context, place.Wish, *study.Choice) (place.Order, error) {
	return nil, errStarted
}

// TestAKernelIsAskedForOrWasThere starts one by its name, or for a run that it had.
func TestAKernelIsAskedForOrWasThere(t *testing.T) {
	check := func(kernel string, earlier *result.Header, want error) {
		t.Helper()
		w := &Where{Kernel: kernel, kernels: []place.Kernel{other("there")}}
		if _, err := w.order(t.Context(), place.Wish{Dir: t.TempDir(), Earlier: earlier}, &study.Choice{}); !errors.Is(err, want) {
			t.Errorf("--kernel %q, after %+v: %v", kernel, earlier, err)
		}
	}
	check("", nil, nil)
	check("other", nil, errStarted)
	check("", &result.Header{Cells: []result.Cell{{FileSystem: "there"}}}, errStarted)
	check("", &result.Header{Cells: []result.Cell{{}}}, nil)
}

func TestPackagesAreThoseOfTheKernel(t *testing.T) {
	w := &Where{Kernel: "other", kernels: []place.Kernel{other("there")}}
	if got := strings.Join(w.missingPackages(t.Context()), " "); got != "of-the-other" {
		t.Errorf("missing are %q", got)
	}
}

func TestUnknownKernelIsRefusedWithTheKnownOnes(t *testing.T) {
	w := &Where{kernels: []place.Kernel{other("there")}}
	if _, err := w.parseKernel("beos"); err == nil || !strings.Contains(err.Error(), "use other, or leave --kernel out") {
		t.Error(err)
	}
	if name, err := w.parseKernel("other"); name != "other" || err != nil {
		t.Error(name, err)
	}
}
