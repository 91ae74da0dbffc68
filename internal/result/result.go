// Package result is what a run of measurements is on disk: JSON Lines with one
// header, one line for each trial and one end line, written as they happen.
//
// It holds raw values, never figures made out of them: the table, the chart and
// the advice can all be made again from the file. Keys carry their units
// (elapsed_ns, size_bytes), a policy is its own text. The package measures and
// judges nothing.
//
// Start with [Create] to write a file and [Read] to read one.
package result

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/machine"
)

// SchemaVersion is the version of the file's form. It grows when a reader of an
// older version would misread a newer file; a new key alone does not.
const SchemaVersion = 1

// A Run is all that one file holds.
type Run struct {
	Header Header
	Trials []Trial // in the order in which they were run
	End    *End    // nil: the file has no end line, because the program was killed
	Torn   bool    // the last line is not whole, and was left out
}

// A Header is the first line: what was to be run, on which machine.
type Header struct {
	SchemaVersion int            `json:"schema_version"`
	Program       string         `json:"program"` // holdfast and its version
	Study         string         `json:"study"`
	Question      string         `json:"question"` // what the study answers
	StartedAt     time.Time      `json:"started_at"`
	Dir           string         `json:"dir"`
	Seed          uint64         `json:"seed"`
	Plan          Plan           `json:"plan"`
	Machine       []machine.Fact `json:"machine"`
	Cells         []Cell         `json:"cells"`

	// SystemCallsUnseen says why no system calls were counted, or is empty.
	SystemCallsUnseen string `json:"system_calls_unseen,omitempty"`
}

// A Plan is what the header promises.
type Plan struct {
	Preset   string        `json:"preset"` // quick, default or full
	Rounds   int           `json:"rounds"`
	Estimate time.Duration `json:"estimate_ns"`
	Limit    time.Duration `json:"limit_ns"` // no round is started after it; 0 is no limit
	Size     int64         `json:"size_bytes"`
	Room     int64         `json:"room_bytes"` // the most that is on the disk at once
}

// A Cell is one thing that is measured, once in every round.
type Cell struct {
	Name        string          `json:"name"`
	Twin        string          `json:"twin_of,omitempty"` // the cell that this one repeats, to learn the noise
	Policy      holdfast.Policy `json:"policy"`
	RecordBytes int64           `json:"record_bytes"`
	Writers     int             `json:"writers"`
	Records     int64           `json:"records"` // in one trial

	// LatencyStride is how many Writes go by for each one that is timed.
	LatencyStride int `json:"latency_stride"`
}

// A Trial is one run of one cell.
type Trial struct {
	Cell     string        `json:"cell"`
	Round    int           `json:"round"`    // from 1; 0 is the round that counts system calls and warms up
	Position int           `json:"position"` // from 1, within the round
	StartNs  time.Duration `json:"start_ns"` // since the header's started_at, by the monotonic clock
	Measurement
}

// A Measurement is what one trial showed. Its times are wall time by the
// monotonic clock, but for User and System.
type Measurement struct {
	Records int64 `json:"records"`
	Size    int64 `json:"size_bytes"`

	Elapsed time.Duration `json:"elapsed_ns"` // the five stages together
	Open    time.Duration `json:"open_ns"`
	Write   time.Duration `json:"write_ns"` // from the first Write until the last writer is done
	Flush   time.Duration `json:"flush_ns"`
	Sync    time.Duration `json:"sync_ns"`
	Close   time.Duration `json:"close_ns"`

	User   time.Duration `json:"user_cpu_ns"` // of the whole process, during the five stages
	System time.Duration `json:"system_cpu_ns"`

	// SystemCalls are those that the kernel counted. Counting slows each call
	// down, so only round 0 counts, and its times are in no figure.
	SystemCalls *SystemCalls `json:"system_calls,omitempty"`
	Writer      WriterCalls  `json:"writer"`

	Latency     Latency `json:"latency"`
	Allocations int64   `json:"allocations"`
	Allocated   int64   `json:"allocated_bytes"`
}

// SystemCalls are the calls of the whole process, as the kernel counted them.
type SystemCalls struct {
	Total  int64 `json:"total"`
	Writes int64 `json:"writes"` // write, pwrite and their like
	Syncs  int64 `json:"syncs"`  // fsync, fdatasync and their like
}

// WriterCalls are the Writer's own counts.
type WriterCalls struct {
	Writes      int64 `json:"writes"`
	Flushes     int64 `json:"flushes"`
	Syncs       int64 `json:"syncs"`
	SystemCalls int64 `json:"system_calls"`
	Waits       int64 `json:"waits"`
}

// An End is the last line.
type End struct {
	State   State         `json:"state"`
	Reason  string        `json:"reason,omitempty"` // why the run is not complete
	Rounds  int           `json:"rounds"`           // whole rounds
	Elapsed time.Duration `json:"elapsed_ns"`       // of the whole run, with checks and pauses
}

// A State says how a run ended.
type State string

const (
	Complete    State = "complete"
	OutOfTime   State = "out of time" // it kept its limit, with fewer rounds than planned
	Interrupted State = "interrupted" // by the user
	Failed      State = "failed"
)

// Complete reports whether the run did what its plan said.
func (r Run) Complete() bool { return r.End != nil && r.End.State == Complete && !r.Torn }

// Mark says in one line what is missing from the run, or is empty.
func (r Run) Mark() string {
	done := fmt.Sprintf("%d of %d rounds are whole", r.Rounds(), r.Header.Plan.Rounds)
	switch {
	case r.Torn:
		return "torn: the file breaks off within a line; " + done
	case r.End == nil:
		return "no end: the run was killed or still goes on; " + done
	case r.End.State == Complete:
		return ""
	case r.End.Reason == "":
		return string(r.End.State) + ": " + done
	default:
		return fmt.Sprintf("%s: %s; %s", r.End.State, r.End.Reason, done)
	}
}

// Rounds returns how many rounds are whole: in them every cell has its trial.
func (r Run) Rounds() int {
	trials := map[int]int{}
	for _, t := range r.Trials {
		trials[t.Round]++
	}
	whole := 0
	for round, n := range trials {
		if round > 0 && n == len(r.Header.Cells) {
			whole++
		}
	}
	return whole
}

// Rounded returns the trials of a cell in whole rounds, in the order of the
// rounds: the i-th of one cell and the i-th of another are of the same round.
func (r Run) Rounded(cell string) []Trial {
	perRound := map[int]int{}
	for _, t := range r.Trials {
		perRound[t.Round]++
	}
	var trials []Trial
	for _, t := range r.Trials {
		if t.Cell == cell && t.Round > 0 && perRound[t.Round] == len(r.Header.Cells) {
			trials = append(trials, t)
		}
	}
	slices.SortStableFunc(trials, func(a, b Trial) int { return a.Round - b.Round })
	return trials
}

// Counted returns the trial of a cell in which system calls were counted.
func (r Run) Counted(cell string) (Trial, bool) {
	for _, t := range r.Trials {
		if t.Cell == cell && t.SystemCalls != nil {
			return t, true
		}
	}
	return Trial{}, false
}

// Costs returns the elapsed nanoseconds of one record, round by round.
func Costs(trials []Trial) []float64 {
	costs := make([]float64, len(trials))
	for i, t := range trials {
		costs[i] = float64(t.Elapsed) / float64(t.Records)
	}
	return costs
}
