// Package timing holds tables of times by buffer size, and the forms of CSV in which
// they were published. A published repetition of TLPI's exercises 13-1 and 13-2 has
// them.
//
// Start with [Row].
package timing

import "strings"

// A Row is the times of one buffer size, of one file on one file system.
type Row struct {
	FileSystem string // such as ext4; empty where all rows are of one that is named elsewhere
	FileSize   int64  // bytes; 0 where all rows are of one size
	Form       Form
	Buffer     int // bytes
	Elapsed    float64
	CPU        float64 // seconds; user and system together
	User       float64 // NaN where the CPU time can't be parted, as in User-Mode Linux
	System     float64
	Predicted  bool // from other rows, and not measured
}

// A Form names the operation that a row times.
type Form string

// The forms. Each but Write and its like is of a copy by read(2) and write(2).
const (
	Copy      Form = "copy"              // read and write
	InC       Form = "copy in C"         // the same, with the loop in C
	Synced    Form = "O_SYNC"            // read, and write with O_SYNC
	DSynced   Form = "O_DSYNC"           // read, and write with O_DSYNC
	EndSynced Form = "sync at the end"   // read, write, and one fsync(2)
	Write     Form = "write"             // write alone
	WriteSync Form = "write, O_SYNC"     // write alone, with O_SYNC
	WriteData Form = "write, O_DSYNC"    // write alone, with O_DSYNC
	EachData  Form = "write, fdatasync"  // write, and fdatasync(2) after each
	EachSync  Form = "write, fsync each" // write, and fsync(2) after each
)

// Forms returns all of them, copies first.
func Forms() []Form {
	return []Form{Copy, InC, Synced, DSynced, EndSynced, Write, WriteSync, WriteData, EachData, EachSync}
}

// Writes reports whether nothing is read in the form.
func (f Form) Writes() bool { return strings.HasPrefix(string(f), string(Write)) }
