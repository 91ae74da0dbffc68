package cli

import "testing"

func TestNounsHaveTheirPlurals(t *testing.T) {
	check := func(n int64, noun, want string) {
		t.Helper()
		if got := CountText(n, noun); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(1, "directory", "1 directory")
	check(3, "directory", "3 directories")
	check(0, "file", "0 files")
	check(1234, "line", "1,234 lines")
}
