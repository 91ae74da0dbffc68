package holdfast

import (
	"errors"
	"iter"
)

// Results says what happened to each file of a [Files.WriteAll], in the order in
// which they were given.
type Results struct {
	chunks [][]FileResult // of growing lengths: none is copied to make room
	len    int
}

const (
	firstResults = 16
	mostResults  = 1024
)

// add returns room for one more result, which stays where it is.
func (r *Results) add() *FileResult {
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last]) == cap(r.chunks[last]) {
		size := firstResults
		if last >= 0 {
			size = min(2*cap(r.chunks[last]), mostResults)
		}
		r.chunks = append(r.chunks, make([]FileResult, 0, size))
		last++
	}
	chunk := &r.chunks[last]
	*chunk = (*chunk)[:len(*chunk)+1]
	r.len++
	return &(*chunk)[len(*chunk)-1]
}

// Len returns how many files there are.
func (r *Results) Len() int { return r.len }

// All returns the results in the order of submission.
func (r *Results) All() iter.Seq2[int, FileResult] {
	return func(yield func(int, FileResult) bool) {
		i := 0
		for _, chunk := range r.chunks {
			for _, result := range chunk {
				if !yield(i, result) {
					return
				}
				i++
			}
		}
	}
}

// Err returns the errors of all files that have one, joined in the order of
// submission, or nil.
func (r *Results) Err() error {
	var errs []error
	for _, result := range r.All() {
		if result.Err != nil {
			errs = append(errs, result.Err)
		}
	}
	return errors.Join(errs...)
}
