package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSparseFileHasNoBlocks: a file system that makes a hole takes no room for it.
func TestSparseFileHasNoBlocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if err := run(t.Context(), []string{"gen", file, "1GiB", "--kind", "sparse"}, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if blocks := info.Sys().(*syscall.Stat_t).Blocks; info.Size() != 1<<30 || blocks != 0 {
		t.Errorf("%d bytes in %d blocks", info.Size(), blocks)
	}
}
