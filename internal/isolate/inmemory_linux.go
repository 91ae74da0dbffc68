package isolate

import (
	"testing"

	"golang.org/x/sys/unix"
)

// InMemory reports whether dir's file system has no disk.
func InMemory(t *testing.T, dir string) bool {
	t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		t.Fatal(err)
	}
	kind := int64(uint32(stat.Type))
	return kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC
}
