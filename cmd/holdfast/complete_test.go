package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/lab"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/run"
)

// completed is the list that a shell is offered.
func completed(t *testing.T, args ...string) []string {
	t.Helper()
	var stdout strings.Builder
	if err := runCommand(t.Context(), append([]string{"__complete"}, args...), nil, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
	return lines[:len(lines)-1] // the last one says how to go on
}

func TestCompletionOffersWhatIsTaken(t *testing.T) {
	check := func(want []string, args ...string) {
		t.Helper()
		got := completed(t, args...)
		for _, one := range want {
			if !slices.Contains(got, one) {
				t.Errorf("%q offers %q, and not %s", args, got, one)
			}
		}
	}
	studies := strings.Join(completed(t, "study", ""), "\n")
	for _, s := range lab.Studies() {
		if !strings.Contains(studies, s.Name+"\t"+s.Question[:20]) {
			t.Errorf("study offers %q, and not %s", studies, s.Name)
		}
	}
	check([]string{"buffer=64KiB,sync=group", "buffer=0,sync=never"}, "bench", "--policy", "")
	check([]string{"buffer=64KiB,sync=group"}, "write", "--policy", "")
	check([]string{"atomic", "sync=close"}, "copy", "--policy", "")
	check([]string{"atomic", "sync=close"}, "gen", "--policy", "")
	check(lab.Studies().ClaimNames(), "audit", "--claim", "")
	check(advise.PresetNames(), "advise", "--for", "")
	check(texts(run.CacheStates), "bench", "--cache", "")
	check(texts(report.Formats()), "report", "--export", "")
	check([]string{"json"}, "advise", "--export", "")
	check([]string{"ext4", "xfs"}, "bench", "--fs", "")
	check([]string{"sparse"}, "gen", "--kind", "")
	check([]string{"enqueue"}, "prove", "--workload", "")
	check([]string{"memory", "hostile", "fault", "all"}, "prove", "--level", "")
	check([]string{"durable", "eachdurable"}, "bench", "--policy", "")
	baselines := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, baselines)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(cache, "holdfast", "baselines")
	if err := errors.Join(os.MkdirAll(kept, 0o700), os.WriteFile(filepath.Join(kept, "before.jsonl"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	check([]string{"before"}, "bench", "--baseline", "")
	check([]string{"baseline:before"}, "compare", "")
	check([]string{"btrfs"}, "prove", "--fs", "")
	check([]string{"A", "write"}, "study", "copy", "--part", "")
	check([]string{"cold"}, "study", "bytes", "--cache", "")
	if got := completed(t, "study", "lines", ""); len(got) != 0 {
		t.Errorf("a second study: %q", got)
	}
}

// TestCompletionOffersNothingThatIsRefused gives each value that is offered to its flag.
func TestCompletionOffersNothingThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, cmd := range newRoot().Commands() {
		for _, flag := range []string{"policy", "baseline", "claim", "for", "cache", "export", "part", "fs", "mode", "kind", "kernel", "workload", "level"} {
			if f := cmd.Flags().Lookup(flag); f != nil {
				for _, value := range valuesOf(cmd.Name(), flag) {
					if err := f.Value.Set(value); err != nil {
						t.Errorf("%s --%s %s: %v", cmd.Name(), flag, value, err)
					}
				}
			}
		}
	}
}

func TestVersionIsAFlagToo(t *testing.T) {
	t.Parallel()
	of := func(args ...string) string {
		var stdout strings.Builder
		if err := runCommand(t.Context(), args, nil, &stdout, io.Discard); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		return stdout.String()
	}
	if want := of("version"); want == "" || of("--version") != want || of("-v") != want {
		t.Errorf("%q, %q, %q", want, of("--version"), of("-v"))
	}
}
