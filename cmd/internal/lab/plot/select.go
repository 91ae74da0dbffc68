package plot

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
)

const umlPrefix = "uml-"

// InUML reports whether rows of this file system were made in User-Mode Linux:
// they are comparable among themselves only.
func InUML(fileSystem string) bool { return strings.HasPrefix(fileSystem, umlPrefix) }

const whyUnparted = "CPU time there can't be split into user and system"

// rows returns the panel's rows.
func (f form) rows(rows []timing.Row) []timing.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r timing.Row) bool {
		return r.Form != f.of || f.by == byFileSize && r.FileSize == 0 || r.Buffer < f.low || f.high > 0 && r.Buffer > f.high
	})
}

// without returns the reason: none of the rows is for the panel.
func (f form) without(rows []timing.Row) string {
	what := map[timing.Form]string{timing.Copy: "a copy", timing.Synced: "a copy with O_SYNC", timing.Write: "writing alone"}[f.of]
	if f.by == byFileSize {
		what += " that tell the size of the file"
	}
	if f.high > 0 && slices.ContainsFunc(rows, func(r timing.Row) bool { return r.Form == f.of }) {
		return fmt.Sprintf("there are no rows of %s with buffers from %d to %d", what, f.low, f.high)
	}
	return "there are no rows of " + what
}

// A part is the rows of one panel; a form may have several.
type part struct {
	rows   []timing.Row
	name   string // added to the panel's, if there are others
	always bool   // it is added even so
	size   int64  // of the file; 0 where it is not said
	on     string // the one file system, or empty
}

// parts divides the rows into one part for each panel.
func (f form) parts(rows []timing.Row) (parts []part) {
	if f.by == byFileSystem || f.by == byBuffer {
		for _, uml := range []bool{false, true} {
			of := filter(rows, func(r timing.Row) bool { return InUML(r.FileSystem) == uml })
			if len(of) > 0 {
				size := commonSize(of)
				of = filter(of, func(r timing.Row) bool { return r.FileSize == size })
				parts = append(parts, part{rows: of, name: map[bool]string{true: "uml"}[uml], always: uml, size: size})
			}
		}
		return parts
	}
	for _, fs := range fileSystems(rows) {
		of := filter(rows, func(r timing.Row) bool { return r.FileSystem == fs })
		p := part{rows: of, name: fs, always: InUML(fs), on: fs}
		switch {
		case f.by == byTime:
			p.size = commonSize(of)
			p.rows = filter(of, func(r timing.Row) bool { return r.FileSize == p.size })
		case len(fileSizes(of)) < 2:
			continue
		}
		parts = append(parts, p)
	}
	return parts
}

func filter(rows []timing.Row, keep func(timing.Row) bool) (kept []timing.Row) {
	for _, r := range rows {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// different returns what the rows have of one kind, sorted, each once.
func different[T cmp.Ordered](rows []timing.Row, of func(timing.Row) T) []T {
	set := map[T]bool{}
	for _, r := range rows {
		set[of(r)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func fileSystems(rows []timing.Row) []string {
	return different(rows, func(r timing.Row) string { return r.FileSystem })
}

func fileSizes(rows []timing.Row) []int64 {
	return different(rows, func(r timing.Row) int64 { return r.FileSize })
}

func buffers(rows []timing.Row) []int {
	return different(rows, func(r timing.Row) int { return r.Buffer })
}

// commonSize returns the file size for which most file systems have rows, the largest if
// there are several.
func commonSize(rows []timing.Row) int64 {
	on := map[int64]int{}
	for _, fs := range fileSystems(rows) {
		for _, size := range fileSizes(filter(rows, func(r timing.Row) bool { return r.FileSystem == fs })) {
			on[size]++
		}
	}
	return slices.MaxFunc(fileSizes(rows), func(a, b int64) int { return cmp.Or(cmp.Compare(on[a], on[b]), cmp.Compare(a, b)) })
}

// panel makes the panel of one part; ok is false if it has no point.
func (f form) panel(p part, parts int) (panel Panel, ok bool) {
	panel = Panel{Name: f.name, Title: f.title, Group: f.group, form: f}
	if p.always || parts > 1 && p.name != "" {
		panel.Name += "-" + p.name
		panel.Title += " (" + label(p.name) + ")"
	}
	var lost lost
	panel.x, panel.series = f.series(p.rows, &lost)
	panel.notes = f.notes(p, panel.series, lost)
	return panel, len(panel.series) > 0
}

// label returns the name of a file system as it is shown.
func label(fileSystem string) string {
	if name, ok := strings.CutPrefix(fileSystem, umlPrefix); ok {
		return name + " (UML)"
	}
	if fileSystem == "uml" {
		return "UML"
	}
	return fileSystem
}

// lost counts the values that have no place on the axis.
type lost struct{ zeros, broken, unparted int }

// series returns the categories of the axis and the values on them.
func (f form) series(rows []timing.Row, lost *lost) (x []string, all []series) {
	sizes, systems, steps := fileSizes(rows), fileSystems(rows), buffers(rows)
	if f.by == byBuffer {
		for _, fs := range systems {
			x = append(x, label(fs))
		}
		for i, buffer := range steps {
			shift := spread(i, len(steps))
			at := func(r timing.Row) float64 { return float64(slices.Index(systems, r.FileSystem)) + shift }
			all = f.add(all, strconv.Itoa(buffer), filter(rows, func(r timing.Row) bool { return r.Buffer == buffer }), at, f.value, lost)
		}
		return x, all
	}
	for _, buffer := range steps {
		x = append(x, strconv.Itoa(buffer))
	}
	at := func(r timing.Row) float64 { return float64(slices.Index(steps, r.Buffer)) }
	switch f.by {
	case byFileSize:
		for _, size := range sizes {
			all = f.add(all, sizeName(size), filter(rows, func(r timing.Row) bool { return r.FileSize == size }), at, f.value, lost)
		}
	case byFileSystem:
		for _, fs := range systems {
			all = f.add(all, label(fs), filter(rows, func(r timing.Row) bool { return r.FileSystem == fs }), at, f.value, lost)
		}
	case byTime:
		all = f.add(all, nameElapsed, rows, at, elapsed, lost)
		all = f.add(all, nameUser, rows, at, user, lost)
		all = f.add(all, nameSystem, rows, at, system, lost)
		all = f.add(all, nameTotal, rows, at, total, lost)
	}
	return x, all
}

// spread returns how far from the middle of its category the i-th of n dots is. So dots of
// nearly the same value can be distinguished.
func spread(i, n int) float64 {
	if n < 2 {
		return 0
	}
	return 0.7 * (float64(i)/float64(n-1) - 0.5)
}

// add appends the series of the rows, unless it has no point.
func (f form) add(all []series, name string, rows []timing.Row, at, value func(timing.Row) float64, lost *lost) []series {
	points := map[float64]point{}
	for _, r := range rows {
		y := value(r)
		switch {
		case math.IsNaN(y) && math.IsNaN(r.User): // user or system time; no other is NaN
			lost.unparted++
		case math.IsNaN(y) || math.IsInf(y, 0) || y < 0:
			lost.broken++
		case y == 0 && f.logarithmic:
			lost.zeros++
		default:
			points[at(r)] = point{at(r), y, r.Predicted}
		}
	}
	if len(points) == 0 {
		return all
	}
	s := series{name: name}
	for _, x := range slices.Sorted(maps.Keys(points)) {
		s.points = append(s.points, points[x])
	}
	return append(all, s)
}

func sizeName(size int64) string {
	switch {
	case size >= 1<<20 && size%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", size>>20)
	case size >= 1<<10 && size%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", size>>10)
	}
	return fmt.Sprintf("%d bytes", size)
}

// notes returns what the picture alone does not show.
func (f form) notes(p part, all []series, lost lost) (notes []string) {
	add := func(so bool, format string, args ...any) {
		if so {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	add(p.on != "", "on %s", label(p.on))
	add(p.size > 0, "a file of %s", sizeName(p.size))
	add(f.high > 0, "buffers of %d to %d bytes", f.low, f.high)
	add(f.by == byBuffer && len(all) > 1, "within a file system the buffers stand from left to right, the smallest first")
	add(p.always, "measured inside User-Mode Linux: comparable among themselves only")
	add(slices.ContainsFunc(all, series.guessed), "hollow marks are predicted, and not measured")
	add(lost.zeros > 0, "%s 0, which has no place on a logarithmic axis: not drawn", values(lost.zeros))
	add(lost.unparted > 0, "%s not drawn: "+whyUnparted, values(lost.unparted))
	add(lost.broken > 0, "%s not a time: not drawn", values(lost.broken))
	return notes
}

func values(n int) string {
	if n == 1 {
		return "1 value is"
	}
	return fmt.Sprintf("%d values are", n)
}

// guessed reports whether one of its points was predicted.
func (s series) guessed() bool {
	return slices.ContainsFunc(s.points, func(p point) bool { return p.predicted })
}
