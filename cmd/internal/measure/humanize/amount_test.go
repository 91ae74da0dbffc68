package humanize

import (
	"math"
	"testing"
)

func TestThousandsAreGrouped(t *testing.T) {
	check := func(n int64, want string) {
		t.Helper()
		if got := Grouped(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	check(0, "0")
	check(999, "999")
	check(1000, "1,000")
	check(999_999, "999,999")
	check(1_000_000, "1,000,000")
	check(-1, "-1")
	check(-999, "-999")
	check(-1000, "-1,000")
	check(math.MaxInt64, "9,223,372,036,854,775,807")
	check(math.MinInt64, "-9,223,372,036,854,775,808")
}

func TestBytesHaveTheirUnits(t *testing.T) {
	check := func(n int64, binary, decimal string) {
		t.Helper()
		if got := Bytes(n); got != binary {
			t.Errorf("%d is %q, want %q", n, got, binary)
		}
		if got := DecimalBytes(n); got != decimal {
			t.Errorf("%d is %q, want %q", n, got, decimal)
		}
	}
	check(0, "0 B", "0 B")
	check(9, "9 B", "9 B")
	check(999, "999 B", "999 B")
	check(1000, "1000 B", "1.0 kB")
	check(1023, "1023 B", "1.0 kB")
	check(1024, "1.0 KiB", "1.0 kB")
	check(10<<10-52, "9.9 KiB", "10 kB")
	check(10<<10-51, "10 KiB", "10 kB")
	check(5<<18, "1.3 MiB", "1.3 MB") // 1.25: half goes up
	check(100<<20, "100 MiB", "105 MB")
	check(math.MaxInt64, "8.0 EiB", "9.2 EB")
}
