package durable

import "testing"

func TestSyncAllOrNot(t *testing.T) {
	check := func(files int, dirty int64, want bool) {
		t.Helper()
		if got := WorthSyncAll(files, dirty); got != want {
			t.Errorf("%d files, %d dirty: %v", files, dirty, got)
		}
	}
	check(0, FreeDirty, true)
	check(0, FreeDirty+1, false)
	check(10, FreeDirty+10*dirtyPerFile, true)
	check(10, FreeDirty+10*dirtyPerFile+1, false)
}
