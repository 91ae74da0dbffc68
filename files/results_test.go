//go:build go1.25

package files

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// someResults returns n results of all outcomes, every third with an error.
func someResults(n int, r *rand.Rand) *Results {
	all := &Results{}
	for i := range n {
		result := all.add()
		*result = record{path: strconv.Itoa(i), bytes: r.Int64N(100), attempts: r.Int32N(5), outcome: holdfast.Outcome(r.IntN(int(holdfast.OutcomeUncertain) + 1))}
		if i%3 == 0 {
			result.err = &Error{Path: result.path, Op: "open", Err: syscall.ENOSPC}
		}
	}
	return all
}

func TestResultsStandInTheOrderOfSubmission(t *testing.T) {
	for _, n := range []int{0, 1, 6, 7, 8, 20, 21, 22, 1784, 1785, 1786, 2808, 2809, 2810, 10000} {
		all := someResults(n, rand.New(rand.NewPCG(1, 1)))
		if all.Len() != n {
			t.Fatalf("Len() = %d, want %d", all.Len(), n)
		}
		for i := range n {
			if got := all.At(i).Path; got != strconv.Itoa(i) {
				t.Fatalf("of %d: At(%d) is that of %s", n, i, got)
			}
		}
		next := 0
		for i, result := range all.All() {
			if i != next || result.Path != strconv.Itoa(i) {
				t.Fatalf("of %d: All gave %d, %s for %d", n, i, result.Path, next)
			}
			next++
		}
		if next != n {
			t.Errorf("All gave %d of %d", next, n)
		}
	}
}

func TestAResultOutOfRangeIsAPanic(t *testing.T) {
	for _, n := range []int{0, 16, 20, 1008, 3000} {
		for _, i := range []int{-1, -17, -5000, n, n + 1, n + 5000} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("of %d: At(%d) gave a result", n, i)
					}
				}()
				someResults(n, rand.New(rand.NewPCG(1, 1))).At(i)
			}()
		}
	}
}

func TestResultStaysWhereItIs(t *testing.T) {
	all := &Results{}
	first := all.add()
	for range 5000 {
		all.add()
	}
	first.path = "late"
	if all.At(0).Path != "late" {
		t.Error("the first result moved")
	}
}

func TestAllStopsWhenAsked(t *testing.T) {
	for range someResults(40, rand.New(rand.NewPCG(1, 1))).All() {
		break
	}
}

func TestTotalsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		all := someResults(r.IntN(200), r)
		got := all.Totals()
		if sum := got.Durable + got.Written + got.Partial + got.Untouched + got.Uncertain; got.Files != all.Len() || sum != got.Files {
			t.Fatalf("%d files: %+v", all.Len(), got)
		}
		var want Totals
		of := map[holdfast.Outcome]int{}
		for _, result := range all.All() {
			of[result.Outcome]++
			want.Bytes += result.Bytes
			want.Attempts += int64(result.Attempts)
			if result.Err != nil {
				want.Failed++
			}
		}
		want.Files, want.Durable, want.Written = all.Len(), of[holdfast.OutcomeDurable], of[holdfast.OutcomeWritten]
		want.Partial, want.Untouched, want.Uncertain = of[holdfast.OutcomePartial], of[holdfast.OutcomeUntouched], of[holdfast.OutcomeUncertain]
		if got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

func TestErrorsAreJoinedInOrder(t *testing.T) {
	all := &Results{}
	if err := all.Err(); err != nil {
		t.Errorf("no files: %v", err)
	}
	all.add().path = "fine"
	if err := all.Err(); err != nil {
		t.Errorf("all is well: %v", err)
	}
	all.add().err = &Error{Path: "b", Op: "open", Err: syscall.EACCES}
	all.add().path = "fine too"
	all.add().err = &Error{Path: "a", Op: "write", Offset: 5, Err: syscall.ENOSPC}
	err := all.Err()
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "holdfast: open b: ") || !strings.HasPrefix(lines[1], "holdfast: write a after 5 bytes of this call: ") {
		t.Errorf("%q", err)
	}
	var file *Error
	if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, ErrTemporary) || !errors.As(err, &file) || file.Path != "b" {
		t.Errorf("%v does not report what its parts do", err)
	}
}

func TestResultsAreAJSONArray(t *testing.T) {
	all := &Results{}
	check := func(want string) {
		t.Helper()
		if got, err := json.Marshal(all); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	check(`[]`)
	*all.add() = record{path: "a", bytes: 12, elapsed: 3 * time.Microsecond, attempts: 1, outcome: holdfast.OutcomeDurable}
	*all.add() = record{path: "b", err: &Error{Path: "b", Op: "open", Err: errors.New("no")}}
	check(`[{"path":"a","size_bytes":12,"elapsed_ns":3000,"attempts":1,"outcome":"durable","durable":true},` +
		`{"path":"b","size_bytes":0,"elapsed_ns":0,"attempts":0,"outcome":"untouched","durable":false,"error":"holdfast: open b: no"}]`)
}
