package vfs

import "testing"

func TestSplitPath(t *testing.T) {
	check := func(path, dir, base string) {
		t.Helper()
		if f, b := SplitPath(path); f != dir || b != base {
			t.Errorf("%q: %q, %q", path, f, b)
		}
	}
	check("file", ".", "file")
	check("a/file", "a", "file")
	check("/file", "/", "file")
	check("/a/b/file", "/a/b", "file")
	check("../file", "..", "file")
	check("a//file", "a/", "file")
	check("a/", "a", "")
	check("/", "/", "")
	check("", ".", "")
}
