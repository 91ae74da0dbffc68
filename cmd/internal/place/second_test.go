package place

import (
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/lab"
)

// A reader of reports takes so many bytes.
type reader struct {
	got []byte
	n   int
}

var errEnough = errors.New("enough")

func (r *reader) Write(p []byte) (int, error) {
	if r.got = append(r.got, p...); len(r.got) >= r.n {
		return len(p), errEnough
	}
	return len(p), nil
}

// TestReportsOfASecondProcessAreBytes: times of eight bytes pass the command as they are,
// though a terminal would take some of them for commands.
func TestReportsOfASecondProcessAreBytes(t *testing.T) {
	r := &reader{n: 200 * 8}
	args := []string{"--", "stamp-until-killed", filepath.Join(t.TempDir(), "file"), "os.File", "buffer=0,sync=never", "128"}
	if err := cli.Run(t.Context(), NewSecond(lab.Roles()), args, strings.NewReader(""), r, io.Discard); err == nil {
		t.Error("the writer ended without an error, and its reader had enough")
	}
	if len(r.got) != r.n {
		t.Fatalf("%d bytes of reports, want %d", len(r.got), r.n)
	}
	const hour = 3600e9
	for i := 8; i < r.n; i += 8 {
		before, at := binary.LittleEndian.Uint64(r.got[i-8:]), binary.LittleEndian.Uint64(r.got[i:])
		if at < before || at-before > hour {
			t.Fatalf("report %d is of %d ns, and the one before of %d", i/8, at, before)
		}
	}
}
