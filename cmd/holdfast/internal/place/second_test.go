package place

import (
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// A fewBytes keeps the first 800 bytes, and fails at more.
type fewBytes struct{ kept []byte }

func (b *fewBytes) Write(p []byte) (int, error) {
	if len(b.kept)+len(p) > 800 {
		return 0, errors.New("enough")
	}
	b.kept = append(b.kept, p...)
	return len(p), nil
}

// TestSecondProcessReportsBytes: they are no text, and times that were made one went back by years.
func TestSecondProcessReportsBytes(t *testing.T) {
	var out fewBytes
	file := filepath.Join(t.TempDir(), "records")
	err := cli.Run(t.Context(), NewSecond(), []string{"--", "stamp-until-killed", file, "holdfast", "buffer=4KiB", "64"}, strings.NewReader(""), &out, io.Discard)
	if errors.Is(err, errors.ErrUnsupported) { // no clock that processes share
		isolate.Supported(t, err)
	}
	if err == nil || len(out.kept) != 800 {
		t.Fatalf("%d bytes, %v", len(out.kept), err)
	}
	for b, last := out.kept, uint64(0); len(b) > 0; b = b[8:] {
		at := binary.LittleEndian.Uint64(b)
		if at < last || at > 1<<62 {
			t.Fatalf("a report at %d after one at %d", at, last)
		}
		last = at
	}
}
