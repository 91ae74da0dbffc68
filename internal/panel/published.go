package panel

import "github.com/holdfast-go/holdfast/internal/timing"

// A form is what a panel shows of the rows, and how.
type form struct {
	name, title, group string
	x, y               string // the names of the axes
	of                 timing.Form
	by                 by
	value              func(timing.Row) float64 // nil with byTime, which shows them all
	low, high          int                      // buffers, in bytes; 0 is no bound
	logarithmic        bool
}

// by is what the series of a panel are.
type by int

const (
	byFileSize   by = iota // of one file system
	byTime                 // elapsed, user, system and total, of one file system
	byFileSystem           // of one file size
	byBuffer               // dots; the axis has the file systems
)

func elapsed(r timing.Row) float64 { return r.Elapsed }
func total(r timing.Row) float64   { return r.CPU }
func user(r timing.Row) float64    { return r.User }
func system(r timing.Row) float64  { return r.System }

const (
	groupSizes  = "A file copied, by its size"
	groupSynced = "A file copied with O_SYNC"
	groupCopied = "A file copied, by file system"
	groupWrite  = "A file written, by file system"
)

// The series of [byTime].
const (
	nameElapsed = "Elapsed Time (s)"
	nameUser    = "User CPU Time (s)"
	nameSystem  = "System CPU Time (s)"
	nameTotal   = "Total CPU Time (s)"
)

// published are the panels of the published repetition of TLPI's exercises 13-1
// and 13-2: their titles, axes and ranges. The axes of time of exercise 13-2 had no
// names; here they have those of 13-1.
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

func ofSizes(name, what string, value func(timing.Row) float64) form {
	return form{
		name: name + "-by-buffer-per-file-size", title: what + " by Buffer Size per File Size", group: groupSizes,
		x: "Buffer Size", y: what + " (S)", of: timing.Copy, by: byFileSize, value: value, logarithmic: true,
	}
}

func ofCopies(name, what string, value func(timing.Row) float64) form {
	return form{
		name: name + "-by-buffer-per-file-system", title: what, group: groupCopied,
		x: "Buffer Size", y: what + " (S)", of: timing.Copy, by: byFileSystem, value: value,
	}
}

func ofWrites(name, what string, value func(timing.Row) float64) form {
	return form{
		name: "write-" + name + "-by-buffer-per-file-system", title: what + " by Buffer Size per FS", group: groupWrite,
		x: "Buffer Size", y: what + " (S)", of: timing.Write, by: byFileSystem, value: value,
	}
}

// zoomed returns the panel of all buffers, and the one of those from low to 65536
// bytes.
func zoomed(whole form, low int) []form {
	part := whole
	part.name, part.low, part.high = whole.name+"-zoomed", low, 65536
	return []form{whole, part}
}
