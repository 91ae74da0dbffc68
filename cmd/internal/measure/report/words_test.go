package report

import (
	"math"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

func TestNumbersHaveThreeDigitsAndAUnit(t *testing.T) {
	check := func(x float64, wantCount, wantTime string) {
		t.Helper()
		if got := count(x); got != wantCount {
			t.Errorf("count(%v) = %s, want %s", x, got, wantCount)
		}
		if got := nanoseconds(x); got != wantTime {
			t.Errorf("nanoseconds(%v) = %s, want %s", x, got, wantTime)
		}
	}
	check(0, "0", "0ns")
	check(0.004, "0", "0ns")
	check(0.2, "0.20", "0.20ns")
	check(9.99, "9.99", "9.99ns")
	check(9.999, "10.0", "10.0ns")
	check(99.96, "100", "100ns")
	check(999.4, "999", "999ns")
	check(999.6, "1.00k", "1.00µs")
	check(1234567, "1.23M", "1.23ms")
	check(45.6e9, "45.6G", "45.6s")
	check(4.56e13, "45600G", "45600s")
	check(math.NaN(), "-", "-")
}

func TestSpanNamesItsUnitOnce(t *testing.T) {
	check := func(low, high float64, want string) {
		t.Helper()
		if got := span(low, high); got != want {
			t.Errorf("span(%v, %v) = %s, want %s", low, high, got, want)
		}
	}
	check(1.2e6, 1.3e6, "1.20…1.30M")
	check(900e3, 1.3e6, "900k…1.30M")
	check(5, 7, "5.00…7.00")
	check(math.NaN(), math.NaN(), "-")
}

func TestTickHasNoEmptyDigits(t *testing.T) {
	for x, want := range map[float64]string{1: "1", 10: "10", 1000: "1k", 1e7: "10M", 8.5e6: "8.50M", 1.05e3: "1.05k", 100: "100"} {
		if got := tick(x); got != want {
			t.Errorf("tick(%v) = %s, want %s", x, got, want)
		}
	}
}

func TestWrapBreaksAtSpaces(t *testing.T) {
	if got, want := wrap("aaa bb cccc d", 6, "  "), "aaa bb\n  cccc\n  d\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := wrap("muchtoolong a", 4, "  "), "muchtoolong\n  a\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCallsShowSmallFractions(t *testing.T) {
	check := func(x figure.Number, want string) {
		t.Helper()
		if got := calls(x); got != want {
			t.Errorf("calls(%v) = %s, want %s", x, got, want)
		}
	}
	check(figure.Number(math.NaN()), "-")
	check(0.00001, "0")
	check(0.002, "0.0020")
	check(0.03, "0.03")
	check(3, "3.00")
}
