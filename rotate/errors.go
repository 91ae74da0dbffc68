package rotate

import (
	"fmt"

	"github.com/holdfast-go/holdfast/stats"
)

// An Error is a failure of the log. Its text also says how the log continues.
type Error struct {
	Op   string // write, sync, rotate, reopen, compress, remove or hook
	Path string // of the log, or of a backup

	// AtRisk is the number of accepted bytes that a power cut may take, beyond the policy's Loss.
	// After a failed sync the system may have dropped them.
	AtRisk int64
	Err    error // the system's error
}

// goesOn returns how the log continues after a failure, by Error.Op.
func goesOn() map[string]string {
	return map[string]string{
		"write":    "what was accepted waits in memory, and each call tries again",
		"sync":     "a new file is begun",
		"rotate":   "the log goes on in the same file and tries again",
		"reopen":   "the log goes on in the file that is open and tries again",
		"compress": "the backup stays as it is, and it is tried again",
		"remove":   "it is tried again",
		"hook":     "it is not called again for this file",
	}
}

func (e *Error) Error() string {
	risk := ""
	if e.AtRisk > 0 {
		risk = fmt.Sprintf(" (%d bytes at risk)", e.AtRisk)
	}
	return fmt.Sprintf("holdfast: %s %s%s: %v; %s", e.Op, e.Path, risk, e.Err, goesOn()[e.Op])
}

// Unwrap returns the system's error.
func (e *Error) Unwrap() error { return e.Err }

// Stats are the counts of a log since Open, and the progress of a compression.
type Stats struct {
	stats.Counts       // of all files together
	Rotations    int64 `json:"rotations"`
	Reopens      int64 `json:"reopens"` // Reopen calls, and moves or removals by another program that the log noticed
	Healed       int64 `json:"healed"`  // torn last lines that got their line feed

	Compressed int64 `json:"compressed"` // backups
	Removed    int64 `json:"removed"`    // backups
	// Compressing is the backup in compression, or "". CompressedBytes of its CompressingSize are
	// done.
	Compressing     string `json:"compressing,omitempty"`
	CompressedBytes int64  `json:"compressed_bytes"`
	CompressingSize int64  `json:"compressing_bytes"`
}

// Metrics implements [stats.Source].
func (s Stats) Metrics() []stats.Metric {
	return append(s.Counts.Metrics(),
		stats.Metric{Name: "rotations", Unit: "{rotation}", Help: "Rotations of the log.", Value: float64(s.Rotations)},
		stats.Metric{Name: "reopens", Unit: "{call}", Help: "How often the log was opened anew because another program had moved or removed it.", Value: float64(s.Reopens)},
		stats.Metric{Name: "healed", Unit: "{line}", Help: "Torn lines that were ended.", Value: float64(s.Healed)},
		stats.Metric{Name: "compressed", Unit: "{backup}", Help: "Backups that were compressed.", Value: float64(s.Compressed)},
		stats.Metric{Name: "removed", Unit: "{backup}", Help: "Backups that were removed because of a limit.", Value: float64(s.Removed)},
	)
}
