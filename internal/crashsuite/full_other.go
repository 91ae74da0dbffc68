//go:build go1.25 && !linux

package crashsuite

import "testing"

func onFull(t *testing.T, test func(t *testing.T, dir string, fill, empty func() error)) {
	t.Skip("a small file system of its own is mounted on Linux alone")
}
