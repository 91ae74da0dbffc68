package trial

import (
	"os"
	"testing"
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
		t.Error("a folder that is not there is no error")
	}
}
