package write

import (
	"context"
	"errors"
	"fmt"
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
	o := &order{policy: holdfast.Policy{Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, column: 1, appends: true}
	dir := t.TempDir()
	o.out = target{before: dir + "/", varies: true}
	options := o.options()
	options.Handles = 8
	set, err := files.New(options)
	if err != nil {
		t.Fatal(err)
	}
	s := o.spread(set, newPulse(cli.NewProgress(&stderr, false), set), nil)
	path := filepath.Join(dir, "app")
	give := func(line string) {
		s.splitter.take([]byte(line + "\n"))
		s.flush()
	}
	give("app lost")
	if err := set.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for i := range 10 { // so that its descriptor is closed, and the file synced before
		give(fmt.Sprint(i, strings.Repeat(" x", 1000))) // more than the buffer holds
	}
	give("app new")
	s.close()
	if got, err := os.ReadFile(path); string(got) != "app new\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if s.totals.LostBytes != 9 || s.totals.FailedFiles != 1 || s.totals.Durable {
		t.Errorf("lost %d bytes, failed %d files, durable %v; want 9, 1, false", s.totals.LostBytes, s.totals.FailedFiles, s.totals.Durable)
	}
	var why *cli.Refusal
	if err := s.refusal(); !errors.As(err, &why) || why.Code != cli.ExitNotMet {
		t.Errorf("%v, want exit code %d", err, cli.ExitNotMet)
	}
	if !strings.Contains(stderr.String(), "9 bytes appended before are in no file") {
		t.Errorf("stderr has %q", stderr.String())
	}
}
