// Package plot draws tables of times as the pictures that were published with
// them: one panel each, as SVG, and a page of all.
//
// The list of panels is in published.go. The package does not know what was measured,
// where and how. A panel can be read in black and white: series differ by
// their dashes and marks, and not by colour alone. The same rows give the same
// bytes.
//
// Start with [All].
package plot

import "github.com/holdfast-go/holdfast/cmd/internal/lab/timing"

// A Panel is one picture, with at least one point in it.
type Panel struct {
	Name  string // of its files, without their ending
	Title string
	Group string // a heading for it and its neighbours

	form   form
	x      []string // the categories, from left to right
	series []series
	notes  []string // a note for the reader, without a full stop
}

// An Omitted is a panel that could not be drawn.
type Omitted struct {
	Name, Why string
}

// All returns the panels that there are rows for, in the order in which they were
// published, and why there are no others. Of two rows for the same point the later
// is drawn. Rows of User-Mode Linux (see [InUML]) have panels of their own.
func All(rows []timing.Row) (panels []Panel, left []Omitted) {
	for _, f := range published() {
		drawn, why := f.panels(rows)
		if len(drawn) == 0 {
			left = append(left, Omitted{f.name, why})
		}
		panels = append(panels, drawn...)
	}
	return panels, left
}

// published are the panels of the published repetition of TLPI's exercises 13-1
// and 13-2: their titles, axes and ranges. The axes of time of exercise 13-2 had no
// names; here they have the names of 13-1.
func published() []form {
	forms := []form{
		ofSizes("elapsed", "Elapsed Time", elapsed), ofSizes("total-cpu", "Total CPU Time", total),
		ofSizes("user-cpu", "User CPU Time", user), ofSizes("system-cpu", "System CPU Time", system),
		{
			name: "time-by-buffer-with-o-sync", title: "Time per Buffer Size w/ O_SYNC flag", group: groupSynced,
			x: "Buffer Size", y: "Seconds", of: timing.Synced, by: byTime, logarithmic: true,
		},
	}
	forms = append(forms, zoomed(ofCopies("elapsed", "Elapsed time", elapsed), 512)...)
	forms = append(forms, zoomed(form{
		name: "elapsed-by-file-system-per-buffer", title: "Elapsed time by FS per Buffer Size", group: groupCopied,
		x: "FS", y: "Elapsed time (S)", of: timing.Copy, by: byBuffer, value: elapsed,
	}, 128)...)
	forms = append(forms, zoomed(ofCopies("total-cpu", "Total CPU Time", total), 512)...)
	forms = append(forms, zoomed(ofCopies("user-cpu", "User CPU Time", user), 512)...)
	forms = append(forms, zoomed(ofCopies("system-cpu", "System CPU Time", system), 512)...)
	forms = append(forms, zoomed(ofWrites("elapsed", "Elapsed Time", elapsed), 512)...)
	forms = append(forms, zoomed(form{
		name: "write-elapsed-by-file-system-per-buffer", title: "Elapsed Time by FS per Buffer Size", group: groupWrite,
		x: "File System", y: "Elapsed Time (S)", of: timing.Write, by: byBuffer, value: elapsed,
	}, 128)...)
	forms = append(forms, zoomed(ofWrites("user-cpu", "User CPU Time", user), 512)...)
	return append(forms, zoomed(ofWrites("system-cpu", "System CPU Time", system), 512)...)
}

// A series is a line of a panel, or the dots of one colour.
type series struct {
	name   string
	points []point
}

// A point is a value at a category of the axis.
type point struct {
	x         float64
	y         float64
	predicted bool
}

// panels returns the panels of the form, or why it has none.
func (f form) panels(rows []timing.Row) (panels []Panel, why string) {
	of := f.rows(rows)
	if len(of) == 0 {
		return nil, f.without(rows)
	}
	parts := f.parts(of)
	unparted := false
	for _, p := range parts {
		panel, ok := f.panel(p, len(parts))
		if ok {
			panels = append(panels, panel)
		}
		unparted = unparted || !ok && p.always
	}
	if unparted {
		for i := range panels {
			panels[i].notes = append(panels[i].notes, "file systems inside User-Mode Linux are left out: "+whyUnparted)
		}
	}
	switch {
	case len(panels) > 0:
		return panels, ""
	case len(parts) == 0:
		return nil, "it takes files of two sizes on one file system"
	}
	if unparted {
		return nil, whyUnparted
	}
	return nil, "none of its values fits on its axis"
}
