package plot

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func publishedRows() []timing.Row {
	return slices.Concat(timing.PublishedCopies(), timing.PublishedSynced(), timing.PublishedSizes(), timing.PublishedWrites())
}

func mustAll(t *testing.T, rows []timing.Row) []Panel {
	t.Helper()
	panels, left := All(rows)
	if len(left) > 0 {
		t.Errorf("left out: %v", left)
	}
	return panels
}

func find(t *testing.T, panels []Panel, name string) Panel {
	t.Helper()
	i := slices.IndexFunc(panels, func(p Panel) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no panel %s", name)
	}
	return panels[i]
}

func svgOf(t *testing.T, p Panel) string {
	t.Helper()
	svg := p.SVG()
	if svg == "" {
		t.Fatalf("%s: nothing is drawn", p.Name)
	}
	return svg
}

// texts returns what an SVG has written in it, in order, and fails if it is no XML.
func texts(t *testing.T, svg string) (all []string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			all = append(all, strings.TrimSpace(string(text)))
		}
	}
}

func TestEveryPublishedPanelIsDrawn(t *testing.T) {
	panels := mustAll(t, publishedRows())
	if len(panels) != 15+8 {
		t.Errorf("%d panels, want 15 of exercise 13-1 and 8 of 13-2", len(panels))
	}
	names := map[string]bool{}
	for _, p := range panels {
		if names[p.Name] {
			t.Errorf("two panels are called %s", p.Name)
		}
		names[p.Name] = true
		written := texts(t, svgOf(t, p))
		for _, want := range []string{p.Title, p.form.x, p.form.y} {
			if !slices.Contains(written, want) {
				t.Errorf("%s: %q is not in it", p.Name, want)
			}
		}
	}
}

func TestAxesAreAsPublished(t *testing.T) {
	panels := mustAll(t, slices.DeleteFunc(publishedRows(), func(r timing.Row) bool { return r.FileSystem == "bfs" }))
	check := func(name string, title, x, y string, categories ...string) {
		t.Helper()
		p := find(t, panels, name)
		if p.Title != title || p.form.x != x || p.form.y != y || !slices.Equal(p.x, categories) {
			t.Errorf("%s: %q, %q, %q, %q", name, p.Title, p.form.x, p.form.y, p.x)
		}
		written := texts(t, svgOf(t, p))
		begin := max(0, slices.Index(written, categories[0]))
		if begin+len(categories) > len(written) || !slices.Equal(written[begin:begin+len(categories)], categories) {
			t.Errorf("%s: the axis is not marked with %q in %q", name, categories, written)
		}
	}
	all := strings.Fields("1 2 4 8 16 32 64 128 256 512 1024 4096 16284 65536")
	systems := strings.Fields("btrfs ext2 ext4 jfs xfs")
	check("elapsed-by-buffer-per-file-size", "Elapsed Time by Buffer Size per File Size", "Buffer Size", "Elapsed Time (S)", all...)
	check("user-cpu-by-buffer-per-file-size", "User CPU Time by Buffer Size per File Size", "Buffer Size", "User CPU Time (S)", all...)
	check("time-by-buffer-with-o-sync", "Time per Buffer Size w/ O_SYNC flag", "Buffer Size", "Seconds", all...)
	check("elapsed-by-buffer-per-file-system", "Elapsed time", "Buffer Size", "Elapsed time (S)", all...)
	check("elapsed-by-buffer-per-file-system-zoomed", "Elapsed time", "Buffer Size", "Elapsed time (S)", all[9:]...)
	check("elapsed-by-file-system-per-buffer", "Elapsed time by FS per Buffer Size", "FS", "Elapsed time (S)", systems...)
	check("total-cpu-by-buffer-per-file-system", "Total CPU Time", "Buffer Size", "Total CPU Time (S)", all...)
	check("system-cpu-by-buffer-per-file-system-zoomed", "System CPU Time", "Buffer Size", "System CPU Time (S)", all[9:]...)
	check("write-user-cpu-by-buffer-per-file-system", "User CPU Time by Buffer Size per FS", "Buffer Size", "User CPU Time (S)", all...)
	check("write-elapsed-by-file-system-per-buffer-zoomed", "Elapsed Time by FS per Buffer Size", "File System", "Elapsed Time (S)", systems...)

	if dots := find(t, panels, "elapsed-by-file-system-per-buffer-zoomed"); len(dots.series) != 7 || dots.series[0].name != "128" {
		t.Errorf("a colour for each of %v", dots.series)
	}
	synced := find(t, panels, "time-by-buffer-with-o-sync")
	var names []string
	for _, s := range synced.series {
		names = append(names, s.name)
	}
	if want := []string{nameElapsed, nameUser, nameSystem, nameTotal}; !slices.Equal(names, want) {
		t.Errorf("the series of O_SYNC are %q", names)
	}
}

func TestPanelsDrawTheValues(t *testing.T) {
	p := find(t, mustAll(t, publishedRows()), "elapsed-by-buffer-per-file-system")
	for _, s := range p.series {
		for _, r := range timing.PublishedCopies() {
			i := slices.Index(p.x, fmt.Sprint(r.Buffer))
			if r.FileSystem == s.name && !slices.Contains(s.points, point{x: float64(i), y: r.Elapsed}) {
				t.Errorf("%s, %d bytes: %v is not drawn", s.name, r.Buffer, r.Elapsed)
			}
		}
	}
}

// two are the rows of one file system.
func two(fileSystem string) []timing.Row {
	return []timing.Row{
		{FileSystem: fileSystem, Form: timing.Copy, FileSize: 1 << 20, Buffer: 512, Elapsed: 0.2, CPU: 0.11, User: 0.01, System: 0.1},
		{FileSystem: fileSystem, Form: timing.Copy, FileSize: 1 << 20, Buffer: 4096, Elapsed: 0.1, CPU: 0.051, User: 0.001, System: 0.05},
	}
}

func TestSVGIsTheGoldenOne(t *testing.T) {
	rows := slices.Concat(two("ext4"), two("xfs"))
	for i := range rows[2:] {
		rows[2+i].Elapsed *= 1.5
	}
	rows[2].Predicted = true
	panels, _ := All(rows)
	got := svgOf(t, find(t, panels, "elapsed-by-buffer-per-file-system"))
	const golden = "testdata/elapsed.svg"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the picture is not that of %s; look at it, and then run with -update:\n%s", golden, got)
	}
}

func TestSameRowsGiveTheSameBytes(t *testing.T) {
	draw := func() []byte {
		panels := mustAll(t, publishedRows())
		page := Page([]string{"a.csv"}, panels)
		return append(page, panels[0].SVG()+Pictures(panels)[0].SVG()...)
	}
	if !bytes.Equal(draw(), draw()) {
		t.Error("two drawings of the same rows differ")
	}
}

func TestPredictedValuesAreHollowAndReported(t *testing.T) {
	rows := two("ext4")
	drawnWith := func() string {
		panels, _ := All(rows)
		return svgOf(t, find(t, panels, "elapsed-by-buffer-per-file-system"))
	}
	measured := drawnWith()
	rows[0].Predicted = true
	predicted := drawnWith()
	const hollow = `class="point hollow"`
	if before, after := strings.Count(measured, hollow), strings.Count(predicted, hollow); before != 0 || after != 1 {
		t.Errorf("%d marks are hollow of measured rows, and %d where one is predicted", before, after)
	}
	if strings.Contains(measured, "predicted") || !strings.Contains(predicted, "hollow marks are predicted") {
		t.Error("the note is not there when it should be, or is there when it should not")
	}
}

func TestUserModeLinuxHasItsOwnPanels(t *testing.T) {
	rows := slices.Concat(two("ext4"), two("uml-ext4"), two("uml-jfs"))
	panels, _ := All(rows)
	outside, inside := find(t, panels, "elapsed-by-buffer-per-file-system"), find(t, panels, "elapsed-by-buffer-per-file-system-uml")
	if len(outside.series) != 1 || outside.series[0].name != "ext4" {
		t.Errorf("outside: %v", outside.series)
	}
	if len(inside.series) != 2 || inside.series[0].name != "ext4 (UML)" || inside.Title != "Elapsed time (UML)" {
		t.Errorf("inside: %q, %v", inside.Title, inside.series)
	}
	if !strings.Contains(svgOf(t, inside), "comparable among themselves only") || strings.Contains(svgOf(t, outside), "User-Mode") {
		t.Error("no note says which panel is of User-Mode Linux")
	}
	alone, _ := All(two("uml-jfs"))
	if find(t, alone, "elapsed-by-buffer-per-file-system-uml").Title != "Elapsed time (UML)" {
		t.Error("alone, it is not labelled")
	}
}

// TestTimesThatCannotBePartedAreLeftOutWithTheReason: alone, and beside others.
func TestTimesThatCannotBePartedAreLeftOutWithTheReason(t *testing.T) {
	inside := two("uml-jfs")
	for i := range inside {
		inside[i].User, inside[i].System = math.NaN(), math.NaN()
	}
	panels, left := All(inside)
	reasons := map[string]string{}
	for _, l := range left {
		reasons[l.Name] = l.Why
	}
	for _, name := range []string{"user-cpu-by-buffer-per-file-system", "system-cpu-by-buffer-per-file-system"} {
		if reasons[name] != whyUnparted || slices.ContainsFunc(panels, func(p Panel) bool { return strings.HasPrefix(p.Name, name) }) {
			t.Errorf("%s: %q", name, reasons[name])
		}
	}
	find(t, panels, "total-cpu-by-buffer-per-file-system-uml")
	panels, _ = All(slices.Concat(two("ext4"), inside))
	for name, want := range map[string]bool{"user-cpu-by-buffer-per-file-system": true, "total-cpu-by-buffer-per-file-system": false} {
		if p := find(t, panels, name); slices.ContainsFunc(p.notes, func(n string) bool { return strings.Contains(n, whyUnparted) }) != want {
			t.Errorf("%s: %q", name, p.notes)
		}
	}
	for i := range inside {
		inside[i].Form = timing.Synced
	}
	panels, _ = All(inside)
	if p := find(t, panels, "time-by-buffer-with-o-sync-uml-jfs"); len(p.series) != 2 || !strings.Contains(strings.Join(p.notes, ";"), "not drawn: "+whyUnparted) {
		t.Errorf("%v, %q", p.series, p.notes)
	}
}

// TestPublishedImagesHaveTheirPanelsTogether: each panel is in its picture, at a place of its own.
func TestPublishedImagesHaveTheirPanelsTogether(t *testing.T) {
	panels := mustAll(t, publishedRows())
	pictures, count := Pictures(panels), 0
	if len(pictures) != 7 || pictures[0].Name != "Time_by_Buffer_Size_per_File_Size.svg" {
		t.Fatalf("%d pictures, the first %q", len(pictures), pictures[0].Name)
	}
	for _, p := range pictures {
		svg, places := p.SVG(), map[string]bool{}
		texts(t, svg)
		for _, m := range regexp.MustCompile(`<svg (x="[0-9]+" y="[0-9]+") width="720" height="440"><svg class="plot"`).FindAllStringSubmatch(svg, -1) {
			places[m[1]] = true
		}
		for _, panel := range p.panels {
			if !strings.Contains(svg, `<title id="`+panel.Name+`-title">`) {
				t.Errorf("%s lacks the panel %s", p.Name, panel.Name)
			}
		}
		if len(places) != len(p.panels) || !places[`x="0" y="0"`] {
			t.Errorf("%s: %d panels at %v", p.Name, len(p.panels), places)
		}
		count += len(places)
	}
	if count != 15 {
		t.Errorf("%d panels in the pictures, want 15", count)
	}
	if left := Pictures(panels[:3]); len(left) != 0 {
		t.Errorf("%d pictures of three of four panels", len(left))
	}
}

func TestEachFileSystemHasItsPanelsOfSizes(t *testing.T) {
	var rows []timing.Row
	for _, fs := range []string{"ext4", "xfs"} {
		for _, size := range []int64{1 << 20, 2 << 20} {
			for _, r := range two(fs) {
				r.FileSize = size
				rows = append(rows, r)
			}
		}
	}
	panels, _ := All(rows)
	if p := find(t, panels, "elapsed-by-buffer-per-file-size-xfs"); len(p.series) != 2 || p.series[1].name != "2 MiB" || !strings.HasSuffix(p.Title, "(xfs)") {
		t.Errorf("%q: %v", p.Title, p.series)
	}
	// Of the file sizes the one that all file systems have, and the larger, is compared.
	if p := find(t, panels, "elapsed-by-buffer-per-file-system"); !slices.Contains(p.notes, "a file of 2 MiB") {
		t.Errorf("compared: %q", p.notes)
	}
}

func TestRowsOfUnknownSizeAreNoLineOfTheSizes(t *testing.T) {
	rows := slices.Concat(two("ext4"), two("ext4"), two("ext4"))
	for i := range 2 {
		rows[i].FileSize, rows[2+i].FileSize = 0, 4<<20
	}
	panels, _ := All(rows)
	if p := find(t, panels, "elapsed-by-buffer-per-file-size"); len(p.series) != 2 {
		t.Errorf("%v", p.series)
	}
}

func TestZerosAndWhatIsNoTime(t *testing.T) {
	rows := []timing.Row{
		{Form: timing.Synced, Buffer: 1, Elapsed: 100, CPU: 1, System: 1},
		{Form: timing.Synced, Buffer: 2, Elapsed: 50, CPU: math.NaN(), System: math.Inf(1)},
		{Form: timing.Synced, Buffer: 4, Elapsed: -1, CPU: 0.25, System: 0.25},
	}
	panels, _ := All(rows)
	p := find(t, panels, "time-by-buffer-with-o-sync")
	want := []string{"3 values are 0, which has no place on a logarithmic axis: not drawn", "3 values are not a time: not drawn"}
	if !slices.Equal(p.notes, want) {
		t.Errorf("%q", p.notes)
	}
	if svg := svgOf(t, p); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Error("the picture has a coordinate that is no number")
	}

	for i := range rows {
		rows[i].Elapsed, rows[i].CPU, rows[i].System = 0, 0, 0
	}
	_, left := All(rows)
	if !slices.Contains(left, Omitted{"time-by-buffer-with-o-sync", "none of its values fits on its axis"}) {
		t.Errorf("%v", left)
	}
	for i := range rows { // zeros have their place on an axis that begins at 0
		rows[i].Form = timing.Copy
	}
	panels, _ = All(rows)
	svgOf(t, find(t, panels, "elapsed-by-buffer-per-file-system"))
}

func TestLineIsBrokenWhereAValueIsMissing(t *testing.T) {
	var rows []timing.Row
	for i, elapsed := range []float64{4, 3, 0, 2, 1} {
		rows = append(rows, timing.Row{Form: timing.Synced, Buffer: 1 << i, Elapsed: elapsed})
	}
	panels, _ := All(rows)
	p := find(t, panels, "time-by-buffer-with-o-sync")
	lines, corners := 0, 0
	for _, m := range regexp.MustCompile(`class="line"[^>]* d="(M[^"]*L[^"]*)"`).FindAllStringSubmatch(svgOf(t, p), -1) {
		lines++
		corners += strings.Count(m[1], "L")
	}
	if lines != 2 || corners != 2 {
		t.Errorf("%d lines with %d pieces, want the two parts, of one piece each", lines, corners)
	}
}

func TestOneRowIsAPanel(t *testing.T) {
	for _, form := range []timing.Form{timing.Copy, timing.Synced, timing.Write} {
		panels, left := All([]timing.Row{{Form: form, Buffer: 4096, Elapsed: 0.1, CPU: 0.1, User: 0.1, System: 0.1}})
		if len(panels) == 0 {
			t.Errorf("%s: none; %v", form, left)
		}
		for _, p := range panels {
			if svg := svgOf(t, p); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("%s has a coordinate that is no number", p.Name)
			}
		}
	}
	panels, left := All(nil)
	if len(panels) != 0 || len(left) != 15+8 {
		t.Errorf("of no rows: %d panels, %d left out", len(panels), len(left))
	}
	for _, l := range left {
		if !strings.HasPrefix(l.Why, "there are no rows of ") {
			t.Errorf("%v", l)
		}
	}
}

func TestPageNeedsNoOtherFile(t *testing.T) {
	panels := mustAll(t, publishedRows())
	page := Page([]string{"<ext4>.csv", "xfs.csv"}, panels)
	if got := strings.Count(string(page), "<svg "); got != len(panels) {
		t.Errorf("%d pictures in the page, want %d", got, len(panels))
	}
	for _, never := range []string{"<script", "<link", " src=", "<?xml", "<ext4>", "ZgotmplZ"} {
		if strings.Contains(string(page), never) {
			t.Errorf("the page has %s", never)
		}
	}
	if !strings.Contains(string(page), "<code>&lt;ext4&gt;.csv</code>, <code>xfs.csv</code>") {
		t.Error("the page does not say what it was drawn from")
	}
	if len(page) > 1<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}
