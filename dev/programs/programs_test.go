package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestArmsLeaveTheSameRecords: the arm after keeps what the arm before keeps, in the same order and, but for the times, in the
// same words.
func TestArmsLeaveTheSameRecords(t *testing.T) {
	isolate.Once(t)
	digits := regexp.MustCompile(`[-+.:TZ\d]*\d[-+.:TZ\d]*`)
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := makeSource(source); err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			const count = 3
			var kept [2][]string
			for i, after := range []bool{false, true} {
				o := order{Program: p.name, After: after, Dir: isolate.DirInMemory(t), Source: source, Count: count}
				cmd, err := o.command(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				text, err := output(cmd)
				var r ran
				if err == nil {
					err = json.Unmarshal(text, &r)
				}
				if err != nil || r.Time <= 0 {
					t.Fatalf("after=%v: %v, %+v", after, err, r)
				}
				found, err := p.arm(after).kept(o.Dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range found {
					record := number.FindString(r)
					kept[i] = append(kept[i], record+" in "+digits.ReplaceAllString(strings.Replace(r, record, "", 1), "#"))
				}
				slices.Sort(kept[i]) // some have many goroutines
				if n, err := p.arm(after).read(o.Dir); p.goroutines < 2 && (err != nil || n != count) {
					t.Errorf("after=%v: %d records in their order, %v", after, n, err)
				}
			}
			if len(kept[0]) != count || !slices.Equal(kept[0], kept[1]) {
				t.Errorf("before:\n%s\nafter:\n%s", strings.Join(kept[0], "\n"), strings.Join(kept[1], "\n"))
			}
		})
	}
}

func TestLossIsTheWorst(t *testing.T) {
	ms := int64(time.Millisecond)
	dir, l := t.TempDir(), &loss{}
	a := arm{kept: keptState}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "state"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	acks := func(from, to int, at int64) (text []byte) {
		for n := from; n <= to; n++ {
			text = fmt.Appendf(text, "ack %d %d\n", n, at+int64(n)*ms)
		}
		return text
	}
	check := func(want string) {
		t.Helper()
		if got := l.String(); got != want {
			t.Errorf("%+v is %q, want %q", l, got, want)
		}
	}
	judge := a.judge(nil, l)
	write("record 20\n")
	_, v, judge, err := judge(dir, acks(1, 20, ms))
	if err != nil || v != nil {
		t.Fatal(v, err)
	}
	check("nothing")
	write("record 24\n") // the next life puts 21 to 30
	if _, _, judge, err = judge(dir, acks(21, 30, ms)); err != nil {
		t.Fatal(err)
	}
	check("the last 5ms")
	if l.Lost != 6 {
		t.Errorf("%d lost, want 6", l.Lost)
	}
	write("record 20\n") // the next life acknowledges nothing: what was lost before is not lost again
	_, _, same, err := judge(dir, nil)
	if err != nil || l.Lost != 6 || same == nil {
		t.Errorf("%d lost, want 6; %v", l.Lost, err)
	}
	write("record 29\n") // the next life has found 24, and puts 25 to 30
	if _, _, judge, err = judge(dir, acks(25, 30, ms)); err != nil {
		t.Fatal(err)
	}
	check("the last 5ms")
	if err := os.Remove(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	if _, _, judge, err = judge(dir, acks(30, 31, 2000*ms)); err != nil {
		t.Fatal(err)
	}
	check("everything")
	write("something else")
	if _, _, _, err = judge(dir, acks(1, 2, 3000*ms)); err != nil {
		t.Fatal(err)
	}
	check("**cannot be read**")
}

func TestCountsOfStrace(t *testing.T) {
	all := countsOf(`% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.001000          10       100           write
 30.00    0.000500         100         5         1 fdatasync
 10.00    0.000500         100         2           pwritev2
------ ----------- ----------- --------- --------- ----------------
100.00    0.001500          14       105         1 total
`)
	if calls, syncs := sums(all); calls != 107 || syncs != 7 {
		t.Errorf("%v calls, %v syncs", calls, syncs)
	}
	if x := all["fdatasync"]; x != (spent{5, 500_000}) {
		t.Errorf("fdatasync: %+v", x)
	}
	if calls, syncs := sums(nil); calls != -1 || syncs != -1 {
		t.Errorf("without strace: %v calls, %v syncs", calls, syncs)
	}
}

func TestLinesAreCounted(t *testing.T) {
	all := declarations{
		"xBefore": {"func xBefore() {", "a", "\tb", "c", "}"}, "xAfter": {"func xAfter() {", "a", "b", "d", "e", "}"},
		"helper": {"type helper int"},
	}
	if text, err := all.lines(program{id: "x", more: []string{"helper"}}); err != nil || text != "−1 +2, 1 new" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := all.lines(program{id: "y"}); err == nil {
		t.Error("a program without functions has lines")
	}
}

// TestPageIsOfTheResults: docs/programs.md is made of the file of results, and has each program.
func TestPageIsOfTheResults(t *testing.T) {
	all, err := readResults("../../docs/measured/programs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want, err := pageOf(all)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/programs.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != want {
		t.Errorf("docs/programs.md is not of its results; go run -C dev/programs . makes it. It must be:\n%s", want)
	}
	for _, p := range programs {
		if all[p.name] == nil {
			t.Errorf("%s has no results", p.name)
		}
	}
}
