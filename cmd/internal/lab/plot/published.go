package plot

import "github.com/holdfast-go/holdfast/cmd/internal/lab/timing"

// A form chooses the panel's values from the rows, and how they are drawn.
type form struct {
	name, title, group string
	x, y               string // the names of the axes
	of                 timing.Form
	by                 by
	value              func(timing.Row) float64 // nil with byTime, which shows them all
	low, high          int                      // buffers, in bytes; 0 is no bound
	logarithmic        bool
}

// by says which quantity distinguishes the series of a panel.
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
