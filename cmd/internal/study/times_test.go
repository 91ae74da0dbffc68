package study

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
)

// TestPublishedFormsHavePredictionsApart: no column of theirs could say it.
func TestPublishedFormsHavePredictionsApart(t *testing.T) {
	var rows []timing.Row
	for _, r := range []timing.Row{
		{Form: timing.Copy, FileSize: 100 << 20, Buffer: 1, Elapsed: 70, Predicted: true},
		{Form: timing.Copy, FileSize: 100 << 20, Buffer: 4096, Elapsed: 1},
		{Form: timing.Synced, FileSize: 1 << 20, Buffer: 1, Elapsed: 1582, Predicted: true},
		{Form: timing.Write, FileSize: 32 << 20, Buffer: 4096, Elapsed: 2},
	} {
		r.FileSystem = "ext4"
		rows = append(rows, r)
	}
	texts := map[string]string{}
	for _, f := range timingFiles(rows, rows, nil) {
		var b strings.Builder
		if err := f.write(&b); err != nil {
			t.Fatal(err)
		}
		texts[f.name] = b.String()
	}
	check := func(name string, lines ...string) {
		t.Helper()
		_, body, _ := strings.Cut(strings.TrimSuffix(texts[name], "\n"), "\n")
		if got := strings.Split(body, "\n"); !slices.EqualFunc(got, lines, strings.HasPrefix) {
			t.Errorf("%s has the rows %q, want %q", name, got, lines)
		}
		delete(texts, name)
	}
	check("ext4_results.csv", "4096,1.0")
	check("ext4_results_predicted.csv", "1,70.0")
	check("ext4_time_per_buffer_O_SYNC_predicted.csv", "1,1582.0")
	check("ext4_write_results.csv", "4096,2.0000")
	delete(texts, "timings.csv")
	delete(texts, "iterations.txt")
	if len(texts) > 0 {
		t.Errorf("more files: %q", texts)
	}
}

// TestThePublishedFiguresNeedNoFile, and a file of their name is read instead.
func TestThePublishedFiguresNeedNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	rows, err := readTimings(t.Context(), nil, []string{published})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, r := range rows {
		if r.FileSystem == "btrfs" && r.Form == timing.Copy && r.Buffer == 16284 && r.Elapsed == .34135 {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d times of btrfs at 16284 among %d rows", count, len(rows))
	}
	if err := os.WriteFile(published, []byte("no results"), 0o666); err != nil {
		t.Fatal(err)
	}
	if rows, err := readTimings(t.Context(), nil, []string{published}); err == nil {
		t.Errorf("%d rows of a file that has none", len(rows))
	}
}
