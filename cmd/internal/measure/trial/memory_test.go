package trial

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast"
)

func TestPrepareMemoryLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int64{0, 1, 300 << 10} {
		if err := PrepareMemory(dir, size); err != nil {
			t.Errorf("PrepareMemory(%d) = %v", size, err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left %v (%v)", left, err)
	}
	if err := PrepareMemory(dir+"/none", 1); err == nil {
		t.Error("a directory that is not there is no error")
	}
}

func TestMemoryBytesAreBuffersAndRecords(t *testing.T) {
	check := func(a Append, want int64) {
		t.Helper()
		if got := a.MemoryBytes(); got != want {
			t.Errorf("%v, %d writers of %d bytes: %d, want %d", a.Policy, a.Writers, a.RecordBytes, got, want)
		}
	}
	check(Append{RecordBytes: 128, Writers: 1}, 2*patternSize)
	check(Append{RecordBytes: 128, Writers: 64, Policy: holdfast.Buffered(holdfast.MiB)}, 2<<20+2*64*patternSize)
	check(Append{RecordBytes: 64 << 20, Writers: 3, Policy: holdfast.Durable()}, 2*64<<10+2*3*64<<20)
}
