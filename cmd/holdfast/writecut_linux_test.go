package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestTotalsOfWriteTellWhatAReplacementCouldNotKeep replaces a file of a group that its
// owner is not in, and one of its own.
func TestTotalsOfWriteTellWhatAReplacementCouldNotKeep(t *testing.T) {
	const line = "stripped: 1 file whose owner, group or an attribute could not be kept\n"
	dir := isolate.Public(t, true)
	isolate.Process(t, func(t *testing.T) {
		for _, group := range []int{isolate.Stranger, 1001} {
			path := filepath.Join(dir, strconv.Itoa(group))
			mustWrite(t, path, "old\n")
			if err := os.Chown(path, isolate.Stranger, group); err != nil {
				t.Fatal(err)
			}
		}
		become := func(id int) error {
			return errors.Join(syscall.Setresuid(-1, 0, -1), syscall.Setgroups(nil), syscall.Setresgid(-1, id, -1), syscall.Setresuid(-1, id, -1))
		}
		if err := become(isolate.Stranger); err != nil {
			t.Fatal(err)
		}
		defer become(0) // root removes what the test has made
		for group, want := range map[int]bool{isolate.Stranger: false, 1001: true} {
			for _, policy := range []string{"sync=never", "sync=close"} {
				var stdout, stderr strings.Builder
				args := []string{"write", "--split", "--mode", "replace", "--policy", policy, "--out", dir + "/{1}"}
				err := runCommand(t.Context(), args, strings.NewReader(strconv.Itoa(group)+"\n"), &stdout, &stderr)
				if reported := strings.Contains(stdout.String(), line); err != nil || reported != want {
					t.Errorf("group %d: it is reported: %v, want %v: %v\n%s%s", group, reported, want, err, stdout.String(), stderr.String())
				}
				want = false // it is of the stranger's group now
			}
		}
	})
}
