// Package timing holds tables of times by buffer size, as a published repetition
// of TLPI's exercises 13-1 and 13-2 has them, and the forms of CSV in which they
// were published.
//
// Start with [Row].
package timing

// A Row is the times of one buffer size, of one file on one file system.
type Row struct {
	FileSystem string // such as ext4; empty where all rows are of one that is told elsewhere
	FileSize   int64  // bytes; 0 where all rows are of one size
	Form       Form
	Buffer     int // bytes
	Elapsed    float64
	CPU        float64 // seconds; user and system together
	User       float64
	System     float64
	Predicted  bool // from other rows, and not measured
}

// A Form is what a row is the time of.
type Form string

const (
	Copy   Form = "copy"   // read and write
	Synced Form = "O_SYNC" // read, and write with O_SYNC
	Write  Form = "write"  // write alone
)
