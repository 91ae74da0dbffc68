//go:build !linux

package isolate

import "testing"

// InMemory reports whether dir's file system has no disk. Only Linux reports that here.
func InMemory(*testing.T, string) bool { return false }

// DirInMemory makes a directory for the test.
func DirInMemory(t *testing.T) string { return t.TempDir() }
