package beside

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchproc"
)

// planted is a run of some policies with every character that a policy can have,
// named as the study names them.
func planted(rounds int) result.Run {
	run := result.Run{Header: result.Header{
		SchemaVersion: result.SchemaVersion, Program: "holdfast v0: a trial", Study: "policy", Seed: 5,
		Machine: []machine.Fact{
			{Name: "operating system", Value: "linux/amd64"}, {Name: "CPU model", Value: "abacus: 9000 @ 1 GHz"},
			{Name: "device", Value: "dm-0 on sda, sdb"}, {Name: "GOMAXPROCS", Value: "8"},
		},
	}}
	r := rand.New(rand.NewPCG(1, 2))
	policies := []holdfast.Policy{
		holdfast.Unbuffered(), holdfast.Buffered(4 * holdfast.KiB), holdfast.Periodic(1500 * time.Microsecond),
		{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)}, holdfast.Durable(),
	}
	for i, p := range policies {
		name := fmt.Sprintf("policy=%v/record=%v/writers=%d", p, holdfast.Size(128), 64)
		run.Header.Cells = append(run.Header.Cells, result.Cell{Name: name, Policy: p, RecordBytes: 128, Writers: 64, Records: 1000})
		for round := 1; round <= rounds; round++ {
			elapsed := time.Duration(float64(i+1) * 1e9 * (1 + r.Float64()))
			run.Trials = append(run.Trials, &result.Trial{Cell: name, Round: round, Measurement: result.Measurement{
				Records: 1000, Size: 128000, Elapsed: elapsed, Usage: result.Usage{User: elapsed / 3},
			}})
		}
	}
	return run
}

func exported(t *testing.T, run result.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.Export(&b, nil, run, report.Benchmark); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// key returns the part of a benchmark's name, or its configuration.
func key(t *testing.T, r *benchfmt.Result, name string) string {
	t.Helper()
	var parser benchproc.ProjectionParser
	p, err := parser.Parse(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.Project(r).Get(p.Fields()[0])
}

// samplesByPolicy reads an export, and wants every line to be right.
func samplesByPolicy(t *testing.T, text []byte) map[string][]float64 {
	t.Helper()
	samples := map[string][]float64{}
	reader := benchfmt.NewReader(bytes.NewReader(text), "export")
	for reader.Scan() {
		r, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			t.Fatalf("%v", reader.Result())
		}
		for name, want := range map[string]string{
			"/record": "128B", "/writers": "64", "/gomaxprocs": "8", ".name": "Policy",
			"goos": "linux", "goarch": "amd64", "cpu": "abacus: 9000 @ 1 GHz", "device": "dm-0 on sda, sdb", "study": "policy",
		} {
			if got := key(t, r, name); got != want {
				t.Errorf("%s: %s is %q, want %q", r.Name, name, got, want)
			}
		}
		seconds, ok := r.Value("sec/op")
		if _, rate := r.Value("B/s"); !ok || !rate {
			t.Errorf("%s has %v", r.Name, r.Values)
		}
		policy := key(t, r, "/policy")
		samples[policy] = append(samples[policy], seconds*1e9)
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	return samples
}

// TestExportIsReadByBenchfmt parses every line, takes the policy out of the name
// as it went in, and wants the medians to be ours.
func TestExportIsReadByBenchfmt(t *testing.T) {
	for _, rounds := range []int{10, 11} {
		run := planted(rounds)
		f, err := figure.Of(run)
		if err != nil {
			t.Fatal(err)
		}
		samples := samplesByPolicy(t, exported(t, run))
		for _, row := range f.Groups[0].Rows {
			costs := samples[row.Cell.Policy.String()]
			if len(costs) != rounds {
				t.Fatalf("%v has %d samples", row.Cell.Policy, len(costs))
			}
			if theirs := benchmath.AssumeNothing.Summary(sample(costs), 0.95); math.Abs(theirs.Center-row.Time.Median) > 1e-6*row.Time.Median { // seven digits are exported
				t.Errorf("%v: median %v, benchstat's %v", row.Cell.Policy, row.Time.Median, theirs.Center)
			}
		}
	}
}

// TestBenchstatShowsTheExport runs the command itself.
func TestBenchstatShowsTheExport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "export.txt")
	if err := os.WriteFile(file, exported(t, planted(10)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "tool", "benchstat", "-row", "/record,/writers", "-col", "/policy", file)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	for _, want := range []string{"buffer=64KiB,flush=100ms,sync=1s", "buffer=0,sync=never", "128B", "sec/op", "cpu-sec/op", "cpu: abacus: 9000 @ 1 GHz"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in what benchstat shows:\n%s", want, stdout.String())
		}
	}
}
