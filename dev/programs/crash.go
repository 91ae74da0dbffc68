package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// A loss is the worst of what crashes took.
type loss struct {
	Crashes  int           // how many were looked at
	Records  int           // how many were acknowledged at most
	Lost     int           // the most acknowledged records that one crash took, counted from the first that was not there
	Age      time.Duration // from the acknowledgement of the first of them to that of the last
	All      bool          // one crash took all that was acknowledged, for longer than any promise
	Unread   string        // what the program said that could not read its files
	NotKnown string        // why nothing is known
}

func (l loss) String() string {
	switch {
	case l.NotKnown != "":
		return "not known"
	case l.Unread != "":
		return "**cannot be read**"
	case l.Lost == 0:
		return "nothing"
	case l.All:
		return "everything"
	case l.Lost == 1:
		return "one record"
	case l.Age < time.Millisecond:
		return fmt.Sprintf("the last %d records", l.Lost)
	case l.Age < time.Second:
		return fmt.Sprintf("the last %v", l.Age.Round(time.Millisecond))
	}
	return fmt.Sprintf("the last %v", l.Age.Round(10*time.Millisecond))
}

// times are how long a level takes. A trace of calls makes a program slow.
var times = map[crash.Level]time.Duration{crash.Kill: 1, crash.PowerCut: 2}

// crash kills an arm again and again, and cuts its power.
func (p program) crash(ctx context.Context, dir string, o order, within time.Duration, f *figures) error {
	o.Crash = true
	for level, l := range map[crash.Level]*loss{crash.Kill: &f.Kill, crash.PowerCut: &f.Power} {
		if why := crash.CanSupervise(exec.CommandContext(ctx, "true")); why != "" && level == crash.PowerCut {
			l.NotKnown = why
			continue
		}
		c := crash.Program{
			Start: func(ctx context.Context, dir string) *exec.Cmd {
				o.Dir = dir
				cmd, err := o.command(ctx)
				if err != nil {
					cmd = &exec.Cmd{Err: err}
				}
				return cmd
			},
			Judge: p.arm(o.After).judge(nil, l),
			Dir:   dir, Time: times[level] * within, Seed: rand.Uint64(), Level: level, Naming: true,
		}
		v, err := c.Prove(ctx)
		if err != nil {
			return fmt.Errorf("level %s: %w", level, err)
		}
		switch {
		case v.Failure != nil: // behind a crash it did not go on
			l.Unread = cmp.Or(l.Unread, v.Failure.Words)
		case v.Unknown != "" && l.Crashes == 0:
			l.NotKnown = v.Unknown
		}
	}
	return nil
}

// judge measures what each crash took; it finds no fault. acked are the times at which the records were acknowledged, from the
// first on, in all lives so far.
func (a arm) judge(acked []int64, l *loss) crash.Judge {
	return func(dir string, printed []byte) (t crash.Tally, v *crash.Violation, next crash.Judge, err error) {
		now := extend(acked, printed)
		found, err := a.read(dir)
		t.Acknowledged, t.States = int64(len(now)), 1
		l.Crashes++
		l.Records = max(l.Records, len(now))
		if err != nil && len(now) > 0 {
			l.Unread = cmp.Or(l.Unread, err.Error())
		}
		if lost := len(now) - found; lost > 0 {
			l.Lost = max(l.Lost, lost)
			l.Age = max(l.Age, time.Duration(now[len(now)-1]-now[found]))
			l.All = l.All || found == 0 && now[len(now)-1]-now[0] > int64(longest)
			now = now[:found] // the next life puts them again
		}
		return t, nil, a.judge(now, l), nil
	}
}

// extend adds acknowledgements of further lives. The first of a life says how many records that life has found.
func extend(acked []int64, printed []byte) []int64 {
	acked = acked[:len(acked):len(acked)]
	for line := range bytes.Lines(printed) {
		var n int
		var at int64
		if _, err := fmt.Sscanf(string(line), "ack %d %d\n", &n, &at); err != nil || n < 1 {
			continue
		}
		for len(acked) < n { // what was put before a crash, and found, though it was not acknowledged
			acked = append(acked, at)
		}
		acked = acked[:n]
		acked[n-1] = at
	}
	return acked
}

// longest is more than crashPolicy lets a crash take.
const longest = 300 * time.Millisecond

var number = regexp.MustCompile(`record (\d+)`)

// read returns how many records from the first on are there. What panics can't be read.
func (a arm) read(dir string) (n int, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a database that maps a file reads behind its end
	defer func() {
		if cause := recover(); cause != nil {
			n, err = 0, fmt.Errorf("it panics: %v", cause)
		}
	}()
	found, err := a.kept(dir)
	for _, r := range found {
		words := number.FindStringSubmatch(r)
		if words == nil || words[1] != strconv.Itoa(n+1) {
			break
		}
		n++
	}
	return n, err
}
