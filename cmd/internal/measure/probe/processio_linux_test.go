package probe

import (
	"os"
	"testing"
)

// Nothing else of this package's tests runs beside it: they are not parallel.
func TestReadProcessIOCountsCalls(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before, err := ReadProcessIO()
	if err != nil {
		t.Fatal(err)
	}
	const writes, reads = 7, 3
	for range writes {
		if _, err := f.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(reads) {
		if _, err := f.ReadAt(make([]byte, 1), i); err != nil {
			t.Fatal(err)
		}
	}
	after, err := ReadProcessIO()
	if err != nil {
		t.Fatal(err)
	}
	// One more read: the read of the counts. The runtime writes to wake its poller, so there may be a
	// few more of both.
	gotWrites, gotReads := after.WriteCalls-before.WriteCalls, after.ReadCalls-before.ReadCalls
	if gotWrites < writes || gotWrites > writes+5 || gotReads < reads+1 || gotReads > reads+6 {
		t.Errorf("%d write calls and %d read calls were counted, want about %d and %d", gotWrites, gotReads, writes, reads+1)
	}
}
