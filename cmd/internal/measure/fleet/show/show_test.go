package show

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// made makes up a fleet: several kinds of machines, some slow hosts of each kind, and some silent
// hosts.
func made(kinds, hosts, slow, silent int) fleet.Fleet {
	var all []fleet.Host
	for kind := range kinds {
		for i := range hosts {
			h := fleet.Host{
				Name: fmt.Sprintf("k%02dh%04d", kind, i), File: fmt.Sprintf("r/k%02dh%04d.jsonl", kind, i), Study: "policy", Program: "holdfast 1", Rounds: 6,
				StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
				Machine:   []machine.Fact{{Name: "CPU model", Value: fmt.Sprintf("Fast %d", kind)}, {Name: "kernel", Value: "6.1"}},
			}
			if i == hosts-1 {
				h.FastSync = "a sync takes 9µs"
			}
			times := 1.0
			if i < slow {
				times, h.Machine[1].Value = 30, "5.4"
			}
			for n := range 18 {
				p := holdfast.Policy{Buffer: holdfast.Size(n) * holdfast.KiB, Sync: holdfast.Durable().Sync}
				x := 1e6 * times
				s := figure.Summary{Summary: stat.Summary{N: 6, Median: x, Low: x * 0.99, High: x * 1.01, Confidence: 0.95}}
				h.Times = append(h.Times, fleet.Time{Key: fleet.Key{Name: p.String(), Policy: p, Load: figure.Load{RecordBytes: 128, Writers: 64}}, Cell: p.String(), Part: fleet.Sync, Record: s})
			}
			all = append(all, h)
		}
	}
	var none []fleet.Silent
	for i := range silent {
		none = append(none, fleet.Silent{Host: fmt.Sprint("s", i), File: fmt.Sprintf("r/s%d.jsonl", i), Why: "is empty"}, fleet.Silent{Host: fmt.Sprint("t", i), Why: "no results"})
	}
	return fleet.New(all, none, nil, fleet.DefaultThreshold)
}

// TestTextHasAtMostThirtyLines: whatever is found, thirty lines show the beginning of it, and name the
// command for the rest.
func TestTextHasAtMostThirtyLines(t *testing.T) {
	for _, of := range []struct{ kinds, hosts, slow, silent int }{{0, 0, 0, 1}, {1, 1, 0, 0}, {1, 4, 1, 0}, {1, 6, 0, 2}, {1, 7, 1, 0}, {1, 100, 1, 0}, {1, 1000, 200, 500}, {40, 10, 2, 0}, {40, 5, 1, 300}} {
		f := made(of.kinds, of.hosts, of.slow, of.silent)
		for _, columns := range []int{60, 80, 100} {
			var b strings.Builder
			if err := Text(&b, f, false, columns); err != nil {
				t.Fatal(err)
			}
			text := b.String()
			for line := range strings.Lines(text) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > columns {
					t.Errorf("%+v: a line of %d columns of %d: %s", of, n, columns, line)
				}
			}
			if n := strings.Count(text, "\n"); n > MostLines {
				t.Errorf("%+v, %d columns: %d lines:\n%s", of, columns, n, text)
			}
			outliers := of.kinds * of.slow
			if len(f.Outliers) != outliers {
				t.Errorf("%+v: %d outliers, want %d", of, len(f.Outliers), outliers)
			}
			shown := strings.Count(text, ": syncs slower: ")
			if shown == 0 && outliers > 0 || shown < outliers && !strings.Contains(text, fmt.Sprintf("and %s more: --all\n", count(outliers-shown, "outlier"))) {
				t.Errorf("%+v: %d of %d outliers, and nothing of the others:\n%s", of, shown, outliers, text)
			}
		}
		var all strings.Builder
		if err := Text(&all, f, true, 80); err != nil || strings.Count(all.String(), ": syncs slower: ") != of.kinds*of.slow {
			t.Errorf("%+v: %v, not every outlier in all", of, err)
		}
	}
}

func TestFormsHaveEveryHost(t *testing.T) {
	f := made(2, 8, 1, 3)
	export := func(format report.Format) string {
		var b strings.Builder
		if err := Export(&b, f, format); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	rows, err := csv.NewReader(strings.NewReader(export(report.CSV))).ReadAll()
	if err != nil || len(rows) != 1+2*8*18+6 || strings.Join(rows[1][14:], " ") != "30 slower answered" {
		t.Errorf("%d rows, %v: %v", len(rows), err, rows[1])
	}
	var page strings.Builder
	if err := HTML(&page, f); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"json": export(report.JSON), "page": page.String()} {
		for _, h := range f.Hosts {
			if !strings.Contains(text, h.Name) {
				t.Errorf("%s has no %s", name, h.Name)
			}
		}
	}
	if text := export(report.Markdown); !strings.Contains(text, "- **k00h0000** (group 1): syncs slower: 30x") {
		t.Errorf("markdown:\n%s", text)
	}
	if err := Export(&page, f, report.Benchmark); err != ErrNoBenchmark {
		t.Error(err)
	}
}
