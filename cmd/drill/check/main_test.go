package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/diy"
)

func TestExitCodesSayWhatWasFound(t *testing.T) {
	run := func(want int, says string, args ...string) {
		t.Helper()
		var out strings.Builder
		if code := check(t.Context(), args, &out, &out); code != want || !strings.Contains(out.String(), says) {
			t.Errorf("%q: exit code %d, want %d, with %q in\n%s", args, code, want, says, &out)
		}
	}
	run(2, "usage: ")
	if why := diy.Missing(); why != "" {
		t.Skip(why)
	}
	run(2, "no such file", filepath.Join(t.TempDir(), "none.c"))
	run(1, "wrong in 1 of 1 cases", "../c/diy_buffering.c")
	run(0, "right: all 16 cases", "../../internal/lab/diy/testdata/student.c")
}
