// Package result is the file format of a run of measurements: JSON Lines with one header, one line for
// each trial and one end line, each written as soon as it is known.
//
// It holds raw data, never figures computed from them: the table, the chart and the advice can all be
// made again from the file. Keys carry their units (elapsed_ns, size_bytes), and a policy is its own
// text. The package measures and judges nothing.
//
// Start with [Create] to write a file and [Read] to read one.
package result

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
)

// SchemaVersion is the version of the file format. It increases when a reader of an older version would
// misread a newer file; a new key alone does not do that. Files of every older version are read.
//
// Version 2 added open loops, whose latency counts from the time when the Write was due, caches that
// are not warm, long runs, and runs that go on after an end. Version 3 added cells that do not run in
// every round: see [Cell.Every].
const SchemaVersion = 3

// A Run is the content of one file.
type Run struct {
	Header  Header
	Resumed []Resumption // one for each time that the run was continued
	Trials  []*Trial     // in the order in which they ran
	// Controls belong to the rounds that ran in processes of their own, in the order of the rounds.
	Controls []Control
	Rests    []Rest // in the order of their rounds
	End      *End   // nil: the file has no end line, because the program was killed
	Torn     bool   // the last line is incomplete, and was left out
	TornAt   int    // its number, from 1
}

// A Header is the first line: the plan of the run, and the machine.
type Header struct {
	SchemaVersion int       `json:"schema_version"`
	Program       string    `json:"program"` // holdfast and its version
	Study         string    `json:"study"`
	Question      string    `json:"question"` // what the study answers
	StartedAt     time.Time `json:"started_at"`
	Dir           string    `json:"dir"`
	WorkDir       string    `json:"work_dir,omitempty"` // in Dir: the one that the run made, and removes at its end
	Seed          uint64    `json:"seed"`
	// Alternated is the name of the other build whose rounds ran alternately with these: both have the same
	// start time and seed.
	Alternated string         `json:"alternated_with,omitempty"`
	Plan       Plan           `json:"plan"`
	Machine    []machine.Fact `json:"machine"`
	Cells      []Cell         `json:"cells"`

	// SystemCallsUnseen is the reason why no system calls were counted, or empty.
	SystemCallsUnseen string `json:"system_calls_unseen,omitempty"`

	// Settings are the user's settings of a study, such as count: the cells can be made again from
	// them.
	Settings map[string]string `json:"settings,omitempty"`
	// Missing lists the cells of the study that can't run here, and the file systems that could not be
	// made.
	Missing []Missing `json:"missing,omitempty"`
	// FileSystems are the file systems that the run made for itself.
	FileSystems []FileSystem `json:"file_systems,omitempty"`
}

// Missing is a cell that can't run here, and the reason.
type Missing struct {
	Cell string `json:"cell"`
	Why  string `json:"why"`
	// Elsewhere are the flags with which it could run; empty: none are known.
	Elsewhere string `json:"elsewhere,omitempty"`
}

// A Resumption reports that a new process continued the run. The trials that follow belong to it, and
// their start_ns counts from here.
type Resumption struct {
	Program   string         `json:"program"`
	StartedAt time.Time      `json:"started_at"`
	WorkDir   string         `json:"work_dir,omitempty"` // as in the header
	Machine   []machine.Fact `json:"machine"`
}

// A Plan is the run's plan of rounds and limits.
type Plan struct {
	Preset string `json:"preset"` // quick, default or full
	Rounds int    `json:"rounds"` // all, or with Width the fewest and about as many as fit into the time

	// Width is the half-width of all ratios' intervals at which the run ends: 0.05 is ±5 %. 0 is a run
	// with exactly Rounds rounds.
	Width float64 `json:"width,omitempty"`
	// Words says that a ratio need not be known so well where the word for it is decided.
	Words bool `json:"words,omitempty"`
	// MostRounds bounds the rounds of a run with a Width, by the bytes that it may write;
	// 0 is no bound.
	MostRounds int `json:"most_rounds,omitempty"`

	Estimate time.Duration `json:"estimate_ns"`
	Limit    time.Duration `json:"limit_ns"`        // no round is started after it; 0 is no limit
	Size     int64         `json:"size_bytes"`      // written in all, about
	Room     int64         `json:"room_bytes"`      // on the disk at once, at most
	Files    int64         `json:"files,omitempty"` // that are made and stay until the end, where there are many
}

// A Cell is one combination that is measured, once in every round.
type Cell struct {
	Name   string          `json:"name"`
	Twin   string          `json:"twin_of,omitempty"` // the cell that this one repeats, to learn the noise
	Empty  bool            `json:"empty,omitempty"`   // writes nothing: its cost is the harness
	Policy holdfast.Policy `json:"policy"`
	// Group separates the cells of a study that do different work: only cells of the same group are
	// compared. It is empty for a cell of a sweep of policies. The policy of a cell with a group is
	// used only if a Writer does its work.
	Group       string `json:"group,omitempty"`
	Does        string `json:"does,omitempty"` // what it is, in words
	RecordBytes int64  `json:"record_bytes"`
	// FileSystem is the file system that the cell ran on, such as xfs, if the run made file systems of
	// its own. The cell's name then begins with it: see [Run.On]. Empty is the file system of the
	// header's Dir.
	FileSystem string `json:"file_system,omitempty"`
	Writers    int    `json:"writers"`
	Records    int64  `json:"records"` // in one trial, or turn

	// Rate is the number of records a second that are due, for all writers together. 0 is a closed
	// loop, where each Write follows the previous one at once.
	Rate float64 `json:"rate_per_s,omitempty"`

	Cache Cache `json:"cache,omitempty"` // what is asked of the page cache; empty is NewFile

	// Every is set for a paced cell: its trials are long enough for the periods of its
	// policy to fall due. Such a cell runs in every n-th round, with n = Every; 0 is every round.
	Every int `json:"every,omitempty"`

	// Short names a cell with the same buffer and shorter periods. It bounds the cost of a paced cell whose trials are too
	// long to have many. StandIn marks such a cell if nobody asked for its policy.
	Short   string `json:"cost_by,omitempty"`
	StandIn bool   `json:"stand_in,omitempty"`

	// Turns is the number of short turns in a trial, one after the other on files of their own; 0: the
	// trial has no turns. Records counts one turn. See [Measurement.Turns].
	Turns int `json:"turns,omitempty"`
	// Control is the number of records that are written without a Writer beside each turn, or beside a
	// trial without turns. 0 is a cell without a control. See [Measurement.Controls].
	Control int64 `json:"control_records,omitempty"`

	// Steady: the cell's trials go on until the throughput is steady, bounded by Records and Longest.
	Steady  bool          `json:"steady,omitempty"`
	Longest time.Duration `json:"longest_ns,omitempty"`

	// LatencyStride: one Write of every LatencyStride is timed.
	LatencyStride int `json:"latency_stride"`
}

// A Cache is the required state of a file's bytes in the page cache when the clock starts. All but
// NewFile append to an existing file.
type Cache string

const (
	NewFile Cache = "new"      // the file is made in the trial
	Warm    Cache = "warm"     // all of it
	Cold    Cache = "cold"     // none of it, or there is no trial
	TryCold Cache = "try-cold" // none of it if that can be had; the trial reports it
	Dropped Cache = "drop"     // none of it, nor anything else that the kernel can drop
	Remount Cache = "remount"  // none of it: the file system was unmounted and mounted again
)

// Holds reports whether a file with r in the page cache is in this state. If r is not known, only the
// states without a requirement hold, such as TryCold.
func (c Cache) Holds(r Residency) bool {
	switch c {
	case NewFile, TryCold, "":
		return true
	case Warm:
		return r.Pages > 0 && r.Resident == r.Pages
	}
	return r.Pages > 0 && r.Resident == 0
}

// A Trial is one execution of one cell.
type Trial struct {
	Cell     string        `json:"cell"`
	Round    int           `json:"round"`    // from 1; 0 is the round that counts system calls and warms up
	Position int           `json:"position"` // from 1, within the round
	StartNs  time.Duration `json:"start_ns"` // since started_at of the header or resumption, by the monotonic clock
	Measurement
}

// latencies returns the three latencies of a trial; a missing one is nil.
func (t *Trial) latencies() [3]*Latency { return [3]*Latency{&t.Latency, t.Service, t.Replayed} }

// A Control is the time of work without any code of ours, at the beginning of a round. A round with a
// Control ran in a process of its own.
type Control struct {
	Round     int           `json:"round"`
	Write     time.Duration `json:"write_ns"`     // write(2) of 4 KiB at the end of a file
	Fdatasync time.Duration `json:"fdatasync_ns"` // of such a write; where there is none, fsync
}

// A Rest says that what was asked of some cells is known: they run in no later round.
type Rest struct {
	Round int      `json:"round"` // the last in which they ran
	Cells []string `json:"cells"` // their names
}

// A Measurement is the result of one trial. Its times are wall time by the monotonic clock, except User
// and System.
type Measurement struct {
	Records int64 `json:"records"`
	Size    int64 `json:"size_bytes"`

	Elapsed time.Duration `json:"elapsed_ns"` // the stages together
	Open    time.Duration `json:"open_ns"`
	Write   time.Duration `json:"write_ns"` // from the first Write until the last writer is done
	Flush   time.Duration `json:"flush_ns"`
	Sync    time.Duration `json:"sync_ns"`
	Close   time.Duration `json:"close_ns"`
	Read    time.Duration `json:"read_ns,omitempty"` // reading a file, in a study
	Work    time.Duration `json:"work_ns,omitempty"` // what else a study times

	// Turns are the Write time of each turn, if the cell has turns. All other fields describe the turns
	// together: sums, and one distribution of the times of their Writes.
	Turns []time.Duration `json:"turns_ns,omitempty"`
	// Controls are the times that the records of the cell's Control took beside each turn: with one bufio.Writer
	// of the policy's buffer size, with write(2) for a policy without a buffer, and with write(2) and
	// fdatasync(2) if each Write waits.
	Controls []time.Duration `json:"controls_ns,omitempty"`

	// Values are further figures of a study; their names contain their units.
	Values map[string]float64 `json:"values,omitempty"`

	Usage // of the whole process, during the five stages

	// SystemCalls are counted by the kernel. Counting slows each call down, so only round 0 counts, and
	// its times are in no figure.
	SystemCalls *SystemCalls `json:"system_calls,omitempty"`
	// IO are the process's reads and writes in this trial, which the kernel counts anyway. It is
	// missing if the kernel does not.
	IO     *IO         `json:"io,omitempty"`
	Writer WriterCalls `json:"writer"`

	// Latency is the time of single Writes: from the call to its return, or in an
	// open loop from the time when the record was due.
	Latency Latency `json:"latency"`
	// Service is, in an open loop only, the time from the call to its return.
	Service *Latency `json:"service,omitempty"`
	// Replayed is Latency with a timer that is never late: the service times, replayed
	// from the times when the records were due. Only in an open loop.
	Replayed *Latency `json:"replayed,omitempty"`
	// Behind is the shortest delay of the last writer behind its schedule in the last quarter of the
	// trial: 0 if each writer had caught up at some time.
	Behind time.Duration `json:"behind_ns,omitempty"`
	// Unserved is the number of an open loop's records that were due and not yet written when the trial
	// gave up. Each is in Latency with the time that it had waited.
	Unserved int64 `json:"unserved,omitempty"`

	// SyncsWriting is the number of syncs that had ended when the last writer was done: the periodic
	// ones, without the final sync.
	SyncsWriting int64 `json:"syncs_while_writing,omitempty"`
	// Oldest is, in an open loop only, the greatest age of a byte that was not yet
	// durable. It was looked up every few milliseconds, so the true age may be greater by that
	// interval.
	Oldest time.Duration `json:"oldest_not_durable_ns,omitempty"`

	Before  *Residency `json:"cache_before,omitempty"` // of the file, when the clock started
	Samples []Sample   `json:"samples,omitempty"`      // of a steady cell
	Steady  bool       `json:"steady,omitempty"`       // the throughput became steady

	Allocations int64 `json:"allocations"`
	Allocated   int64 `json:"allocated_bytes"`

	// Activity is the whole machine's activity during the trial.
	Activity *machine.Activity `json:"activity,omitempty"`
}

// Usage is the resources that the kernel charged to the process (getrusage(2)). A count that the system
// does not keep is zero.
type Usage struct {
	User              time.Duration `json:"user_cpu_ns"`
	System            time.Duration `json:"system_cpu_ns"`
	VoluntarySwitches int64         `json:"voluntary_switches"`
	ForcedSwitches    int64         `json:"involuntary_switches"`
	MinorFaults       int64         `json:"minor_faults"`
	MajorFaults       int64         `json:"major_faults"`
	BlocksIn          int64         `json:"blocks_in"`  // of 512 bytes, read from a disk
	BlocksOut         int64         `json:"blocks_out"` // of 512 bytes, dirtied to be written to a disk
}

// CPU is the sum of user and system time.
func (u Usage) CPU() time.Duration { return u.User + u.System }

// Residency is the number of a file's bytes and pages in the page cache.
type Residency struct {
	Pages    int64  `json:"pages"`
	Resident int64  `json:"resident_pages"`
	Source   string `json:"source"` // the call that reported it, or why it is not known
}

// A Sample is a stretch of a long trial.
type Sample struct {
	At   time.Duration `json:"at_ns"` // its end, since the first Write
	Size int64         `json:"size_bytes"`

	// Of the whole machine, at the sample's end; all are zero if the system does not report them.
	// Writers are slowed once Dirty and Writeback together exceed Throttle.
	Dirty     int64 `json:"dirty_bytes"` // in memory, to be written
	Writeback int64 `json:"writeback_bytes"`
	Throttle  int64 `json:"dirty_throttle_bytes"`
}

// SystemCalls are the calls of the whole process, counted by the kernel.
type SystemCalls struct {
	Total  int64  `json:"total"`
	Writes int64  `json:"writes"` // write, pwrite and their like
	Syncs  int64  `json:"syncs"`  // fsync, fdatasync and their like
	Source string `json:"source"` // tracepoints, or ptrace
	// Records is the number of records that were written during the count, if that was in a run of its
	// own. 0: all records of the trial.
	Records int64 `json:"records,omitempty"`
}

// IO are the read and write calls of a process, from /proc/self/io (proc_pid_io(5)).
type IO struct {
	Reads  int64 `json:"read_calls"`
	Writes int64 `json:"write_calls"`
}

// WriterCalls are the Writer's own counts.
type WriterCalls struct {
	Writes      int64 `json:"writes"`
	Flushes     int64 `json:"flushes"`
	Syncs       int64 `json:"syncs"`
	SystemCalls int64 `json:"system_calls"`
	Waits       int64 `json:"waits"`

	// LongestSync is the time of the longest sync; 0 is none, or not known.
	LongestSync time.Duration `json:"longest_sync_ns,omitempty"`
}

// An End is the last line, unless the run was continued after it.
type End struct {
	State   State         `json:"state"`
	Reason  string        `json:"reason,omitempty"` // why the run ended, where State does not say it
	Rounds  int           `json:"rounds"`           // whole rounds
	Elapsed time.Duration `json:"elapsed_ns"`       // since the start or the last resumption, with checks and pauses

	// Width is the half-width of the widest of all ratios' intervals at the end, if the plan has a
	// Width, without the ratios whose words are decided; 0: not known, or none.
	Width float64 `json:"width,omitempty"`

	// ClockJump is how far the time of day went ahead of the monotonic clock, by which everything is
	// timed. The time of day was set, or the machine slept.
	ClockJump time.Duration `json:"clock_jump_ns,omitempty"`
}

// A State is the way in which a run ended.
type State string

const (
	Complete    State = "complete"    // all rounds, or every interval is as narrow as was wanted
	OutOfTime   State = "out of time" // it kept its limit
	Interrupted State = "interrupted" // by the user
	Failed      State = "failed"
)

// Complete reports whether the run reached its planned end: its rounds, the wanted width, or the end of
// its time.
func (r Run) Complete() bool {
	return r.End != nil && !r.Torn && (r.End.State == Complete || r.End.State == OutOfTime && r.Rounds() >= r.Header.Plan.Rounds)
}

// Mark names in one line what is missing from the run, or is empty.
func (r Run) Mark() string {
	done := r.DoneText() + " rounds are complete"
	switch {
	case r.Torn:
		return fmt.Sprintf("torn: the file ends within line %d; %s", r.TornAt, done)
	case r.End == nil:
		return "no end: the run was killed or is still going on; " + done
	case r.Complete():
		return ""
	case r.End.Reason == "":
		return string(r.End.State) + ": " + done
	default:
		return fmt.Sprintf("%s: %s; %s", r.End.State, r.End.Reason, done)
	}
}

// DoneText is the number of complete rounds, and of how many: 3 of 15. A run that ends when enough is known may have more
// than were planned; then it is the number alone.
func (r Run) DoneText() string {
	done, planned := r.Rounds(), r.Header.Plan.Rounds
	if done > planned {
		return fmt.Sprint(done)
	}
	return fmt.Sprintf("%d of %d", done, planned)
}

// Dirs returns the names of the directories that the run made in Dir, one for each time that it was
// started or continued.
func (r Run) Dirs() []string {
	dirs := []string{r.Header.WorkDir}
	for _, part := range r.Resumed {
		dirs = append(dirs, part.WorkDir)
	}
	return slices.DeleteFunc(dirs, func(name string) bool { return name == "" })
}

// LastRound returns the highest number of a round that was started.
func (r Run) LastRound() int {
	last := 0
	for _, t := range r.Trials {
		last = max(last, t.Round)
	}
	return last
}

// Spent returns the time from the first trial to the last, gaps included, without the pauses before
// each resumption.
func (r Run) Spent() time.Duration {
	spent, part := time.Duration(0), time.Duration(0)
	for _, t := range r.Trials {
		end := t.StartNs + t.Elapsed
		if end < part { // its clock started again
			spent, part = spent+part, 0
		}
		part = max(part, end)
	}
	return spent + part
}

// Resting reports whether the cell of this name rests in a round: it had its last one before.
func (r Run) Resting(cell string, round int) bool {
	for _, rest := range r.Rests {
		if round > rest.Round && slices.Contains(rest.Cells, cell) {
			return true
		}
	}
	return false
}

// RunsIn reports whether the cell runs in a round in which it does not rest. All cells run in round 0.
func (c Cell) RunsIn(round int) bool { return round == 0 || c.Every <= 1 || (round-1)%c.Every == 0 }

// Rounds returns the number of complete rounds: every cell that runs in the round, and does not rest, has its trial.
func (r Run) Rounds() int {
	whole := 0
	for round, ok := range r.wholeRounds() {
		if round > 0 && ok {
			whole++
		}
	}
	return whole
}

// Rounded returns the trials of a cell in complete rounds, in their order. The i-th trials of two cells
// with the same Every are of the same round; a cell that rests has fewer. The trials belong to the run, and must not be changed.
func (r Run) Rounded(cell string) []*Trial { return r.Indexed().Rounded(cell) }

// RoundedOf yields the trials in complete rounds of all cells for which `is` returns true, in the order
// in which they ran. The trials belong to the run, and must not be changed.
func (r Run) RoundedOf(is func(Cell) bool) iter.Seq[*Trial] {
	whole, wanted := r.wholeRounds(), map[string]bool{}
	for _, c := range r.Header.Cells {
		wanted[c.Name] = is(c)
	}
	return func(yield func(*Trial) bool) {
		for _, t := range r.Trials {
			if t.Round > 0 && whole[t.Round] && wanted[t.Cell] && !yield(t) {
				return
			}
		}
	}
}

// Counted returns the trial of a cell in which system calls were counted.
func (r Run) Counted(cell string) (Trial, bool) { return r.Indexed().Counted(cell) }

// Costs returns the elapsed nanoseconds of a record, round by round.
func Costs(trials []*Trial) []float64 {
	costs := make([]float64, len(trials))
	for i, t := range trials {
		costs[i] = float64(t.Elapsed) / float64(t.Records)
	}
	return costs
}
