package filecopy

import "testing"

func TestSizesInRefusalsAreThoseOfPeople(t *testing.T) {
	check := func(asked, free int64, askedText, freeText string) {
		t.Helper()
		if a, f := tooLarge(asked, free); a != askedText || f != freeText {
			t.Errorf("%d of %d: %q of %q", asked, free, a, f)
		}
	}
	check(10_000_000, 8<<20, "9.5 MiB", "8.0 MiB")
	check(1<<20, 1023, "1.0 MiB", "1023 B")
	check(1<<20-1, 99<<10, "1.0 MiB", "99 KiB")
	check(1<<62, 0, "4.0 EiB", "0 B")
	check(10_000_000, 9_999_999, "10000000 B", "9999999 B")
}
