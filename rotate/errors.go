package rotate

import (
	"fmt"

	"github.com/holdfast-go/holdfast/stats"
)

// An Error says what failed, and what goes on.
type Error struct {
	Op   string // write, sync, rotate, reopen, compress or remove
	Path string // of the log, or of a backup

	// AtRisk is how many accepted bytes a power cut may take, though the policy promised to
	// have them on the disk. After a failed sync the system may have dropped them.
	AtRisk int64
	Err    error // what the system said
}

// goesOn says what happens next, by what failed.
func goesOn() map[string]string {
	return map[string]string{
		"write":    "what was accepted waits in memory, and each call tries again",
		"sync":     "a new file is begun",
		"rotate":   "the log goes on in the same file and tries again",
		"reopen":   "the log goes on in the file that is open and tries again",
		"compress": "the backup stays as it is, and it is tried again",
		"remove":   "it is tried again",
	}
}

func (e *Error) Error() string {
	risk := ""
	if e.AtRisk > 0 {
		risk = fmt.Sprintf(" (%d bytes at risk)", e.AtRisk)
	}
	return fmt.Sprintf("holdfast: %s %s%s: %v; %s", e.Op, e.Path, risk, e.Err, goesOn()[e.Op])
}

// Unwrap returns what the system said.
func (e *Error) Unwrap() error { return e.Err }

// Stats are the counts of a log since Open, and what its background is doing.
type Stats struct {
	stats.Counts       // of all files together
	Rotations    int64 `json:"rotations"`
	Reopens      int64 `json:"reopens"` // also of a log that another program had moved or removed
	Healed       int64 `json:"healed"`  // files that ended in a torn line, which a line feed has ended

	Compressed int64 `json:"compressed"` // backups
	Removed    int64 `json:"removed"`    // backups
	// Compressing is the backup that is being compressed, or "". CompressedBytes of its
	// CompressingSize are done.
	Compressing     string `json:"compressing,omitempty"`
	CompressedBytes int64  `json:"compressed_bytes"`
	CompressingSize int64  `json:"compressing_bytes"`
}
