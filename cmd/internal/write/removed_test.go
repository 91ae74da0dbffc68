package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
)

// TestWriteReportsLinesOfARemovedFile removes a file under write. The library reports the
// bytes that went with it to the next call for the path, which write makes twice.
func TestWriteReportsLinesOfARemovedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows does not remove a file that is open")
	}
	var stderr strings.Builder
	d := distribution{policy: holdfast.Policy{Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, bounds: bounds{handles: 8}}
	files, err := files.New(d.options())
	if err != nil {
		t.Fatal(err)
	}
	s := d.spread(files, newPulse(cli.NewProgress(&stderr, false), files), nil)
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	give := func(p *pile) {
		s.append(p)
		s.judge(p)
	}
	give(&pile{path: path, data: []byte("lost\n"), numbers: []int64{1}})
	if err := files.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for i := range 10 { // so that its descriptor is closed, and the file synced before
		full := append(bytes.Repeat([]byte("x"), 2000), '\n') // more than the buffer holds
		give(&pile{path: filepath.Join(dir, fmt.Sprint(i)), data: full, numbers: []int64{2}})
	}
	give(&pile{path: path, data: []byte("new\n"), numbers: []int64{3}})
	s.close()
	if got, err := os.ReadFile(path); string(got) != "new\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if s.totals.LostBytes != 5 || s.totals.FailedFiles != 1 || s.totals.Durable {
		t.Errorf("lost %d bytes, failed %d files, durable %v; want 5, 1, false", s.totals.LostBytes, s.totals.FailedFiles, s.totals.Durable)
	}
	var why *cli.Refusal
	if err := s.refusal(io.NopCloser(strings.NewReader(""))); !errors.As(err, &why) || why.Code != cli.ExitNotMet {
		t.Errorf("%v, want exit code %d", err, cli.ExitNotMet)
	}
	if !strings.Contains(stderr.String(), "5 bytes appended before are in no file") {
		t.Errorf("stderr has %q", stderr.String())
	}
}
