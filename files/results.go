package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errjoin"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// Results says what happened to each file of a [Set.WriteAll], in the order in
// which they were given.
type Results struct {
	chunks [][]record // of growing lengths: none is copied to make room
	len    int
}

// The chunks hold 7, 14, 28 … 224 records, and then as many each. Powers of two would
// take more memory: the allocator's own few bytes would not fit in behind them. Longer ones
// leave more of the last one empty.
const (
	firstResults  = 7
	growingChunks = 6
	mostResults   = 224
)

// add returns room for one more result, which stays where it is.
func (r *Results) add() *record {
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last]) == cap(r.chunks[last]) {
		size := firstResults
		if last >= 0 {
			size = min(2*cap(r.chunks[last]), mostResults)
		}
		r.chunks = append(r.chunks, make([]record, 0, size))
		last++
	}
	chunk := &r.chunks[last]
	*chunk = (*chunk)[:len(*chunk)+1]
	r.len++
	return &(*chunk)[len(*chunk)-1]
}

// A record is a Result in the making, which takes less memory.
type record struct {
	path     string
	bytes    int64
	elapsed  time.Duration
	err      *Error
	attempts int32
	outcome  holdfast.Outcome
	// noJournal is Result.NoJournal.
	noJournal bool
	stripped  bool
	forgone   forgone
}

// forgone names the properties that a file lacks, in one byte: a batch keeps one for each file.
type forgone uint8

const (
	inPlace      forgone = 1 << iota // Result.InPlace
	nameUnsynced                     // Result.NameUnsynced
)

// fail puts an error into the record.
func (r *record) fail(op retry.Op, err error, became holdfast.Outcome) {
	r.outcome = became
	r.stripped = r.stripped && became != holdfast.OutcomeUntouched
	r.err = &Error{
		Path: r.path, Op: string(op), Offset: r.bytes, Attempts: int(r.attempts), Outcome: became, Err: err,
	}
}

func (r *record) result() Result {
	full := Result{
		Path: r.path, Bytes: r.bytes, Elapsed: r.elapsed, Attempts: r.attempts, Outcome: r.outcome,
		NoJournal: r.noJournal,
		Stripped:  r.stripped,
		InPlace:   r.forgone&inPlace != 0, NameUnsynced: r.forgone&nameUnsynced != 0,
	}
	if r.err != nil {
		full.Err = r.err
	}
	return full
}

// returned returns the result as WriteFile does.
func (r *record) returned() (Result, error) {
	full := r.result()
	if r.err != nil && r.outcome == holdfast.OutcomeUntouched {
		return full, asPathError(r.err)
	}
	return full, full.Err
}

// asPathError returns the error of a call that changed nothing as package os does, where that is
// all there is to say.
func asPathError(err *Error) error {
	var number syscall.Errno
	if errors.As(err, &number) && err.Err.Error() == number.Error() {
		if path := sys.PathError(err.Op, err.Path, number); path != nil {
			return path
		}
	}
	return err
}

// Len returns how many files there are.
func (r *Results) Len() int { return r.len }

// All returns the results in the order of submission.
func (r *Results) All() iter.Seq2[int, Result] {
	return func(yield func(int, Result) bool) {
		i := 0
		for _, chunk := range r.chunks {
			for k := range chunk {
				if !yield(i, chunk[k].result()) {
					return
				}
				i++
			}
		}
	}
}

// At returns the result of the ith file that was given, from 0 on. As with a slice
// it panics if there is none.
func (r *Results) At(i int) Result {
	// The n shortest chunks hold first·(2^n - 1) results.
	n := bits.Len(uint(i/firstResults+1)) - 1
	if n < growingChunks {
		return r.chunks[n][i-firstResults*(1<<n-1)].result()
	}
	i -= firstResults * (1<<growingChunks - 1)
	return r.chunks[growingChunks+i/mostResults][i%mostResults].result()
}

// Totals sums up what happened to all files. Files is the sum of the five
// outcomes.
type Totals struct {
	Files     int   `json:"files"`
	Durable   int   `json:"durable"`
	Written   int   `json:"written"` // and not known to be durable
	Partial   int   `json:"partial"`
	Untouched int   `json:"untouched"`
	Uncertain int   `json:"uncertain"`
	Failed    int   `json:"failed"`               // files with an error, whatever the outcome
	NoJournal int   `json:"no_journal,omitempty"` // durable files with Result.NoJournal
	Bytes     int64 `json:"size_bytes"`
	Attempts  int64 `json:"attempts"`
}

// String returns one line, such as "489 of 5000 files succeeded (9.8 %), 4511 failed (90.2 %):
// 489 written, 4511 untouched; 5868 bytes, 489 attempts".
func (t Totals) String() string {
	if t.Files == 0 {
		return "no files"
	}
	percent := func(n int) string {
		p := 100 * float64(n) / float64(t.Files)
		if 0 < n && n < t.Files {
			p = min(max(p, 0.1), 99.9) // neither none nor all
		}
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	var outcomes []string
	for _, o := range []struct {
		n    int
		name holdfast.Outcome
	}{
		{t.Durable, holdfast.OutcomeDurable}, {t.Written, holdfast.OutcomeWritten}, {t.Partial, holdfast.OutcomePartial},
		{t.Untouched, holdfast.OutcomeUntouched}, {t.Uncertain, holdfast.OutcomeUncertain},
	} {
		if o.n > 0 {
			outcomes = append(outcomes, fmt.Sprintf("%d %v", o.n, o.name))
		}
	}
	done := t.Files - t.Failed
	return fmt.Sprintf("%d of %d files succeeded (%s), %d failed (%s): %s; %d bytes, %d attempts",
		done, t.Files, percent(done), t.Failed, percent(t.Failed), strings.Join(outcomes, ", "), t.Bytes, t.Attempts)
}

// String returns the line of Totals, and one for each of the first ten files that failed.
func (r *Results) String() string {
	const most = 10
	totals, lines := r.Totals(), 0
	var b strings.Builder
	b.WriteString(totals.String())
	for _, result := range r.All() {
		if result.Err == nil {
			continue
		}
		if lines++; lines > most {
			fmt.Fprintf(&b, "\nand %d more", totals.Failed-most)
			break
		}
		b.WriteString("\n" + result.Err.Error())
	}
	return b.String()
}

// Totals sums up the results.
func (r *Results) Totals() (t Totals) {
	for _, result := range r.All() {
		t.add(result)
	}
	return t
}

func (t *Totals) add(result Result) {
	t.Files++
	t.Bytes += result.Bytes
	t.Attempts += int64(result.Attempts)
	if result.Err != nil {
		t.Failed++
	}
	if result.NoJournal {
		t.NoJournal++
	}
	switch result.Outcome {
	case holdfast.OutcomeDurable:
		t.Durable++
	case holdfast.OutcomeWritten:
		t.Written++
	case holdfast.OutcomePartial:
		t.Partial++
	case holdfast.OutcomeUntouched:
		t.Untouched++
	default:
		t.Uncertain++
	}
}

// Err joins the errors of all files that failed, in the order of submission, for errors.Is and
// errors.As. Its text is ten lines at most. It is nil if none failed.
func (r *Results) Err() error {
	var all errjoin.Many
	for _, chunk := range r.chunks {
		for i := range chunk {
			if err := chunk[i].err; err != nil {
				all.N++
				all.Errs = append(all.Errs, err)
			}
		}
	}
	return all.Err()
}

// MarshalJSON writes an array of the results, each as [Result.MarshalJSON] does.
func (r *Results) MarshalJSON() ([]byte, error) {
	all := make([]Result, 0, r.len)
	for _, result := range r.All() {
		all = append(all, result)
	}
	return json.Marshal(all)
}

// A Result says what happened to one file.
type Result struct {
	Path     string
	Bytes    int64         // how many bytes of it were written
	Elapsed  time.Duration // from its first system call to its last, pauses included, a batch's shared sync not
	Err      error         // nil, or a *Error
	Attempts int32         // how often it was tried; 0 if it was never begun
	Outcome  holdfast.Outcome

	// NoJournal is a doubt about a durable file: its directory is on ext2, or on an ext4
	// that is not known to have a journal. There, later work in the directory that a crash
	// interrupts may take away its name, though it was durable.
	NoJournal bool
	// Stripped says that Replace could not keep all that the old file had beside its
	// bytes. The system did not let it keep an extended attribute, the owner or the
	// group. Permissions that would go to other users then are left out too.
	Stripped bool

	// InPlace says that Replace wrote over the old file, which can't be replaced by a rename, and
	// NameUnsynced that the file's bytes are durable and its directory can't be synced, so that
	// the outcome is written. Both are of [holdfast.Best].
	InPlace, NameUnsynced bool
}

// Durable reports whether the file's bytes and its name survive the death of the
// machine.
func (r Result) Durable() bool { return r.Outcome == holdfast.OutcomeDurable }

// MarshalJSON writes an object with the keys path, size_bytes, elapsed_ns, attempts,
// outcome, durable and, if they apply, no_journal, stripped, in_place, name_unsynced and error.
func (r Result) MarshalJSON() ([]byte, error) {
	text := ""
	if r.Err != nil {
		text = r.Err.Error()
	}
	return json.Marshal(struct {
		Path      string           `json:"path"`
		Bytes     int64            `json:"size_bytes"`
		Elapsed   int64            `json:"elapsed_ns"`
		Attempts  int32            `json:"attempts"`
		Outcome   holdfast.Outcome `json:"outcome"`
		Durable   bool             `json:"durable"`
		NoJournal bool             `json:"no_journal,omitempty"`
		Stripped  bool             `json:"stripped,omitempty"`
		InPlace   bool             `json:"in_place,omitempty"`
		Unsynced  bool             `json:"name_unsynced,omitempty"`
		Err       string           `json:"error,omitempty"`
	}{r.Path, r.Bytes, r.Elapsed.Nanoseconds(), r.Attempts, r.Outcome, r.Durable(), r.NoJournal, r.Stripped, r.InPlace, r.NameUnsynced, text})
}

// An Error names the operation that failed, the file, and the place in it. Ask errors.Is for the cause:
// os.IsNotExist and its like know only the errors of package os. So a call for one path that has
// changed nothing, because the path is not there, there already or not permitted, returns the
// *fs.PathError instead.
type Error struct {
	Path     string
	Op       string           // such as open, write, sync, close, rename
	Offset   int64            // how many bytes of this call's data are in the file, or were accepted: do not give them again
	Attempts int              // how often it was tried
	Outcome  holdfast.Outcome // the fate of the file, or of this call's data
	Err      error            // the system's error
	AtRisk   int64            // for OnError: how many accepted bytes wait in memory, or after a failed sync may be dropped
	Lost     int64            // how many bytes of earlier calls that Append accepted are in no file, and never will be. Reported by Close, for a removed file by the next call, and for Discard to OnError
}

func (e *Error) Error() string {
	at := "" // no place in the file: an Append does not know where its bytes begin
	if e.Offset > 0 {
		at = fmt.Sprintf(" after %d bytes of this call", e.Offset)
	}
	risk := ""
	if e.AtRisk > 0 {
		risk = fmt.Sprintf(" (%d bytes at risk)", e.AtRisk)
	}
	cause := strings.TrimPrefix(fmt.Sprint(e.Err), "holdfast: ") // of an error that other calls return as it is
	return fmt.Sprintf("holdfast: %s %s%s%s: %s", e.Op, e.Path, at, risk, cause)
}

// Unwrap returns what the system said.
func (e *Error) Unwrap() error { return e.Err }
