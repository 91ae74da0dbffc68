package isolate

import (
	"os"
	"slices"
	"testing"
)

// The passes of ./check that run all tests again.
const (
	Race     = "race" // with the race detector
	Ordinary = "user" // as an ordinary user
)

// Pass is the pass that runs these tests again, or empty.
func Pass() string { return os.Getenv("HOLDFAST_PASS") }

// Once skips a test in these passes, or in all that run the tests again where none is named: it
// starts the same goroutines and makes the same system calls as other tests.
func Once(t testing.TB, passes ...string) {
	t.Helper()
	if pass := Pass(); pass != "" && (len(passes) == 0 || slices.Contains(passes, pass)) {
		t.Skipf("it has nothing to add in the pass %q", pass)
	}
}
