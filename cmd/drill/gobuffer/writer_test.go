//go:build drill

package gobuffer

import (
	"io"
	"testing"
)

// TestYours says in plain words what is wrong with writer.go.
func TestYours(t *testing.T) {
	for _, fault := range Check(func(to io.Writer, size int) Buffered { return NewWriter(to, size) }) {
		t.Error(fault)
	}
}
