package study

import (
	"math"
	"testing"
)

func TestDurationsHaveThreeDigitsAndAUnit(t *testing.T) {
	check := func(ns float64, want string) {
		t.Helper()
		if got := Duration(ns); got != want {
			t.Errorf("%v ns is printed %s, want %s", ns, got, want)
		}
	}
	check(0.123456, "0.123ns")
	check(1, "1ns")
	check(999.4, "999ns")
	check(999.6, "1µs")
	check(1000, "1µs")
	check(1234, "1.23µs")
	check(999_600, "1ms")
	check(999_600_000, "1s")
	check(1234e9, "1,234s")
	check(math.NaN(), Dash)
}

func TestRatiosHaveNoPowerOfTen(t *testing.T) {
	check := func(x float64, want string) {
		t.Helper()
		if got := Times(x); got != want {
			t.Errorf("%v is printed %s, want %s", x, got, want)
		}
	}
	check(19.34, "19.3x")
	check(0.5, "0.5x")
	check(999.7, "1,000x")
	check(1394, "1,394x")
	check(0.00003, "0.00003x")
	check(-0.000012345, "-0.0000123x")
	check(0, "0x")
}

func TestSharesHaveNoPowerOfTen(t *testing.T) {
	check := func(share float64, want string) {
		t.Helper()
		if got := Percent(share); got != want {
			t.Errorf("%v is printed %s, want %s", share, got, want)
		}
	}
	check(0.998, "99.8 %")
	check(12.5, "1,250 %")
	check(1e-7, "0.00001 %")
	check(math.NaN(), Dash)
}
