package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// shortRun is one that has come to its end.
func shortRun(t *testing.T) result.Run {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.jsonl")
	args := []string{"--dir", t.TempDir(), "--allow-tmpfs", "--writers", "1", "--policy", "buffer=4KiB", "--rate", "1000", "--time", "1s", "--rounds", "1", "-o", file}
	if err := cli.Run(t.Context(), New(nil), args, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	run, err := cli.ReadResults(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestARunGoesOnInTheFileThatWasRead has the file exchanged for a link to another unfinished
// run when it is read.
func TestARunGoesOnInTheFileThatWasRead(t *testing.T) {
	short := shortRun(t)
	short.Trials, short.End = nil, nil
	text := func() string {
		var b bytes.Buffer
		if err := result.Write(&b, short); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	theirs := text()
	short.Header.Seed++
	roots := text()
	ground, err := trial.OpenWorkDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer ground.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it ends when it has begun
	changed := 0
	isolate.Lured(t, theirs, func(l isolate.Lure, wait func()) {
		victim := filepath.Join(l.Victim, "file")
		if err := os.WriteFile(victim, []byte(roots), 0o600); err != nil {
			t.Fatal(err)
		}
		earlier, err := cli.ReadResults(t.Context(), l.File, nil)
		if err != nil {
			t.Fatal(err)
		}
		wait()
		if errors.Is(run.New(io.Discard, ground, ground.Dir(), l.File).Resume(ctx, nil, earlier), result.ErrChanged) {
			changed++
		}
		if now, err := os.ReadFile(victim); err == nil && string(now) == roots { // as lured wants it
			_ = os.WriteFile(victim, []byte(isolate.Mine), 0o600)
		}
	})
	if rounds := isolate.Shortened(isolate.AttackRounds); changed < rounds/2 {
		t.Errorf("another run was found in %d of %d rounds", changed, rounds)
	}
}
