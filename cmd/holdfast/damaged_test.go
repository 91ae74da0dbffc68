package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

func TestDamagedResultsAreReportedWithFileAndLine(t *testing.T) {
	t.Parallel()
	good := mustRead(t, "../internal/measure/result/testdata/version1.jsonl")
	check := func(old, damaged, want string) {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %s", old)
		}
		file := filepath.Join(t.TempDir(), "damaged.jsonl")
		mustWrite(t, file, strings.Replace(good, old, damaged, 1))
		for _, args := range [][]string{{"report", file}, {"compare", file, file}, {"advise", file, "--need", "loss<=1s"}} {
			_, stderr, code := wantSafe(t, "", args...)
			if code != cli.ExitUsage || !strings.HasPrefix(stderr, "holdfast: "+file+": "+want) || !strings.Contains(stderr, "\nhint: ") {
				t.Errorf("%q: exit code %d, stderr:\n%s", args, code, stderr)
			}
		}
	}
	check(`"hdr_histogram":"HISTFAAA`, `"hdr_histogram":"HISTFAA!`, "line 2: the histogram of round 0 of policy=buffer=0,sync=group/record=128B/writers=2 can't be decoded: ")
	check(`"hdr_histogram":"HISTFAAA`, `"hdr_histogram":"`, "line 2: the histogram of round 0")
	check(`"record_bytes":128`, `"record_bytes":-128`, "line 1: record_bytes -128 of the cell ")
	check(`"writers":2`, `"writers":-2`, "line 1: writers -2 of the cell ")
	check(`"latency_stride":`, `"latency_stride":-`, "line 1: latency_stride -")
	check(`"size_bytes":`, `"size_bytes":-`, "line 1: size_bytes -")
	check(`"rounds":`, `"rounds":-`, "line 1: rounds -")
	check(`"write_ns":`, `"write_ns":-`, "line 2: write_ns -")
	check(`"syncs":`, `"syncs":-`, "line 2: syncs -")
}
