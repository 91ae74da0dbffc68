package rotate

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) { os.Exit(isolate.Tests{M: m}.Run()) }

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

// TestRotateLosesNothing but what comes to a file after it was removed, within a second. A buffer may end in the middle of a
// record, which the end of the file by another program then splits.
func TestRotateLosesNothing(t *testing.T) {
	for _, x := range troubles {
		x.at.size /= 8
		for _, a := range arms[:2] { // the others' losses are not our test's
			t.Run(x.name+" "+a.name, func(t *testing.T) {
				t.Parallel()
				const records = 12_000 // 1.2 MB in 1.5 seconds
				c, err := measure(t.TempDir(), a, x, records, 8000)
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%+v", c)
				split := 0
				if x.paced && strings.Contains(a.name, "Periodic") && (x.name == "removed" || x.name == "copied and truncated") {
					split = x.times
				}
				if c.files < 2 && x.name != "removed" {
					t.Errorf("%d files: nothing happened to it", c.files)
				}
				full := strings.Contains(x.name, "full")
				lost := split
				if x.name == "removed" {
					lost += c.late
				}
				if c.records+c.refused != records || full != (c.refused > 0) || c.twice > 0 || c.zeros > 0 || c.split > 2*split || c.lost > lost {
					t.Errorf("%+v", c)
				}
			})
		}
	}
}

// TestShortLivesLeaveNoMoreFilesThanTheLimit, and the log itself.
func TestShortLivesLeaveNoMoreFilesThanTheLimit(t *testing.T) {
	for _, a := range arms[:2] {
		if files, err := lives(t.TempDir(), a); err != nil || files != mostBackups+1 {
			t.Errorf("%s: %d files, %v", a.name, files, err)
		}
	}
}

// A broken log loses, doubles and splits what it is given.
type broken struct{ *os.File }

func (b broken) Write(p []byte) (int, error) {
	switch {
	case bytes.HasPrefix(p, []byte("0 7 ")):
		return len(p), nil
	case bytes.HasPrefix(p, []byte("0 8 ")):
		p = append(bytes.Clone(p), p...)
	case bytes.HasPrefix(p, []byte("0 9 ")):
		p = append(bytes.Clone(p[:20]), append([]byte("\n"), p[20:]...)...)
	case bytes.HasPrefix(p, []byte("0 10 ")):
		p = append([]byte("\x00\x00"), p...)
	case bytes.HasPrefix(p, []byte("0 11 ")):
		return 0, os.ErrInvalid
	}
	return b.File.Write(p)
}

func (broken) Rotate() error { return nil }

func TestWhatALogBreaksIsCounted(t *testing.T) {
	a := arm{"broken", func(path string, _ limits) (sink, error) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		return broken{f}, err
	}}
	c, err := measure(t.TempDir(), a, trouble{}, 800, 8000)
	want := count{records: 799, refused: 1, lost: 2, twice: 1, split: 2, zeros: 2, files: 1}
	if err != nil || c != want || c.String() != "2 lost, 1 refused, 1 twice, 2 pieces, 2 bytes of zeros" {
		t.Errorf("%v, %v; want %v", c, err, want)
	}
	// In a file that was removed, what came later is lost.
	c, err = measure(t.TempDir(), a, trouble{times: 1, do: func(t *trial) error {
		t.writing.Lock()
		defer t.writing.Unlock()
		return t.remove()
	}}, 800, 8000)
	if err != nil || c.lost < 380 || c.lost > 402 || c.late+2 < c.lost || c.files != 0 {
		t.Errorf("removed: %+v, %v", c, err)
	}
}

func TestTableHasARowForEach(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	if err := run(t.Context(), []string{"-records", "800", "-rate", "100000", "-dir", dir}, &out, &out); err != nil {
		t.Fatal(err)
	}
	not := strings.Count(out.String(), "not measured |") // without root, and each with a line that says why
	if n := strings.Count(out.String(), " lost"); n+not != len(troubles)*len(arms) || strings.Count(out.String(), "\n") != 3+len(troubles)+not || strings.Count(out.String(), " files |") != len(arms) {
		t.Errorf("%d cells:\n%s", n, out.String())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := run(t.Context(), []string{"-records", "1"}, &out, &out); command.ExitCode(err) != command.ExitUsage {
		t.Error(err)
	}
}
