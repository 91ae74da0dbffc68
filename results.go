package holdfast

import (
	"encoding/json"
	"errors"
	"iter"
	"math/bits"
	"time"
)

// Results says what happened to each file of a [Files.WriteAll], in the order in
// which they were given.
type Results struct {
	chunks [][]record // of growing lengths: none is copied to make room
	len    int
}

const (
	firstResults = 8
	mostResults  = 1024
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

// A record is a FileResult in the making, which takes less memory.
type record struct {
	path     string
	bytes    int64
	elapsed  time.Duration
	err      *FileError
	attempts int32
	outcome  Outcome
}

// fail puts an error into the record.
func (r *record) fail(op fileOp, err error, became Outcome) {
	r.outcome = became
	r.err = &FileError{
		Path: r.path, Op: string(op), Offset: r.bytes, Attempts: int(r.attempts), Outcome: became, Err: err,
	}
}

func (r *record) result() FileResult {
	full := FileResult{
		Path: r.path, Bytes: r.bytes, Elapsed: r.elapsed, Attempts: r.attempts, Outcome: r.outcome,
	}
	if r.err != nil {
		full.Err = r.err
	}
	return full
}

// told returns the result as Write does.
func (r *record) told() (FileResult, error) {
	full := r.result()
	return full, full.Err
}

// Len returns how many files there are.
func (r *Results) Len() int { return r.len }

// All returns the results in the order of submission.
func (r *Results) All() iter.Seq2[int, FileResult] {
	return func(yield func(int, FileResult) bool) {
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
func (r *Results) At(i int) FileResult {
	// The chunks before the first of the longest hold first·(2^n - 1) results.
	n := bits.Len(uint(i/firstResults+1)) - 1
	if n < growingChunks {
		return r.chunks[n][i-firstResults*(1<<n-1)].result()
	}
	i -= mostResults - firstResults
	return r.chunks[growingChunks+i/mostResults][i%mostResults].result()
}

// growingChunks is how many chunks are shorter than mostResults.
const growingChunks = 7

// FileTotals sums up what happened to all files. Files is the sum of the five
// outcomes.
type FileTotals struct {
	Files     int   `json:"files"`
	Durable   int   `json:"durable"`
	Written   int   `json:"written"` // and not known to be durable
	Partial   int   `json:"partial"`
	Untouched int   `json:"untouched"`
	Uncertain int   `json:"uncertain"`
	Failed    int   `json:"failed"` // files with an error, whatever the outcome
	Bytes     int64 `json:"size_bytes"`
	Attempts  int64 `json:"attempts"`
}

// Totals sums up the results.
func (r *Results) Totals() (t FileTotals) {
	for _, result := range r.All() {
		t.add(result)
	}
	return t
}

func (t *FileTotals) add(r FileResult) {
	t.Files++
	t.Bytes += r.Bytes
	t.Attempts += int64(r.Attempts)
	if r.Err != nil {
		t.Failed++
	}
	switch r.Outcome {
	case OutcomeDurable:
		t.Durable++
	case OutcomeWritten:
		t.Written++
	case OutcomePartial:
		t.Partial++
	case OutcomeUntouched:
		t.Untouched++
	default:
		t.Uncertain++
	}
}

// Err joins the errors of all files that failed, in the order of submission. It is
// nil if none did.
func (r *Results) Err() error {
	var all []error
	for _, chunk := range r.chunks {
		for i := range chunk {
			if err := chunk[i].err; err != nil {
				all = append(all, err)
			}
		}
	}
	return errors.Join(all...)
}

// MarshalJSON writes an array of the results, each as [FileResult.MarshalJSON] does.
func (r *Results) MarshalJSON() ([]byte, error) {
	all := make([]FileResult, 0, r.len)
	for _, result := range r.All() {
		all = append(all, result)
	}
	return json.Marshal(all)
}
