package slopes

import (
	"math"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

func TestMain(m *testing.M) {
	command.Serve(Kind)
	os.Exit(m.Run())
}

func TestSlopeIsThePower(t *testing.T) {
	check := func(want float64, times ...float64) {
		t.Helper()
		if got := slope([]int{10, 100, 1000}, times); math.Abs(got-want) > 1e-9 {
			t.Errorf("slope of %v is %v, want %v", times, got, want)
		}
	}
	check(0, 5, 5, 5)
	check(1, 5, 50, 500)
	check(-0.5, 100, 100/math.Sqrt(10), 10)
}

// TestEachFamilyDoesItsWork in two small amounts.
func TestEachFamilyDoesItsWork(t *testing.T) {
	t.Chdir("..") // where the command runs
	for _, f := range families {
		for _, n := range []int{1, 20} {
			if c, err := f.run(t.TempDir(), n); err != nil || c.units < 1 || c.time <= 0 {
				t.Errorf("%s, %d: %+v, %v", f.name, n, c, err)
			}
		}
	}
}
