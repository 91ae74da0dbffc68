package crash

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Apart is the only argument with which [Options.Child] is to call [JudgeApart].
const Apart = "memory"

// An apartOrder is what a process judges at level memory.
type apartOrder struct {
	Policies   []holdfast.Policy
	All        bool
	Workloads  []string
	Levels     []Level
	States     int
	Time, Left time.Duration
	Seed       uint64
}

// An apartAnswer says that a cell was begun, or that its verdict is made, or is that verdict.
type apartAnswer struct {
	Begun, Made *int // of the order's cells
	Verdict     *Verdict
}

// JudgeApart makes the verdicts of level memory that an order asks for. It ends the process when nobody waits for them any more.
func JudgeApart(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	var what apartOrder
	if err := json.NewDecoder(in).Decode(&what); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is the end of the process that has the other end
		os.Exit(1)
	}()
	known := o.Workloads
	o.Policies, o.All, o.Levels, o.States, o.Time, o.Seed, o.Workloads = what.Policies, what.All, what.Levels, what.States, what.Time, what.Seed, nil
	for _, name := range what.Workloads {
		w := Find(known, name)
		if w == nil {
			return fmt.Errorf("there is no workload %q", name)
		}
		o.Workloads = append(o.Workloads, w)
	}
	var mu sync.Mutex // of answers
	answers := json.NewEncoder(out)
	say := func(a apartAnswer) {
		mu.Lock()
		defer mu.Unlock()
		_ = answers.Encode(a) // who does not listen ends this process
	}
	o.working = func(i int, done bool) {
		if done {
			say(apartAnswer{Made: &i})
		} else {
			say(apartAnswer{Begun: &i})
		}
	}
	doubted := map[string]bool{}
	_, err := o.judgeCells(ctx, Memory, time.Now().Add(what.Left), func(v *Verdict) {
		v.judge(doubted)
		say(apartAnswer{Verdict: v})
	})
	return err
}

// judgeApart has the verdicts of level memory made by a process of its own: a workload that panics there, in whatever goroutine, ends
// that process, and its verdict is that. What the process had not judged then has no verdict.
func (o Options) judgeApart(ctx context.Context, end time.Time) ([]*Verdict, error) {
	order := apartOrder{Policies: o.Policies, All: o.All, Levels: o.Levels, States: o.States, Time: o.Time, Left: time.Until(end), Seed: o.Seed}
	for _, w := range o.Workloads {
		order.Workloads = append(order.Workloads, w.Name)
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	cmd, said := o.Child(ctx, Apart), &head{}
	cmd.Stderr = said
	in, err := cmd.StdinPipe() // its end would end the process
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	_, err = in.Write(append(text, '\n'))
	cells, working := o.Cells(Memory), map[int]bool{}
	verdicts := make([]*Verdict, len(cells))
	take := func(i int, v *Verdict) {
		verdicts[i] = v
		if o.Each != nil {
			o.Each(v)
		}
	}
	for lines := json.NewDecoder(out); err == nil; {
		var a apartAnswer
		if err = lines.Decode(&a); err != nil { // it has ended
			break
		}
		switch {
		case a.Begun != nil:
			working[*a.Begun] = true
		case a.Made != nil:
			delete(working, *a.Made)
		case a.Verdict != nil:
			i := -1
			for n, c := range cells { // the same cell may be there twice
				if i < 0 && verdicts[n] == nil && c.Workload.Name == a.Verdict.Workload && c.Policy == a.Verdict.Policy {
					i = n
				}
			}
			if i < 0 {
				err = fmt.Errorf("a verdict of %s under %v, which was not ordered", a.Verdict.Workload, a.Verdict.Policy)
				break
			}
			take(i, a.Verdict)
		}
	}
	_ = in.Close()
	ended := cmd.Wait()
	switch broken := Panicked(said.String()); {
	case ctx.Err() != nil:
		return verdictsOf(verdicts), context.Cause(ctx)
	case ended == nil && errors.Is(err, io.EOF):
		return verdictsOf(verdicts), nil
	case broken != nil && len(working) > 0:
		o.panicked(cells, working, broken, take, verdicts)
		return verdictsOf(verdicts), nil
	default:
		return verdictsOf(verdicts), fmt.Errorf("the process of level memory: %w: %s", cmp.Or(ended, err), said)
	}
}

// panicked makes the verdict of the cell that a process worked on when it panicked. Where there were more, that is not known, and the verdict
// names them. The cells that have no verdict had no time.
func (o Options) panicked(cells []Cell, working map[int]bool, broken *Violation, take func(int, *Verdict), verdicts []*Verdict) {
	var among []int
	for i, c := range cells {
		if working[i] && c.Workload.Control == "" {
			among = append(among, i)
		}
	}
	for i, c := range cells {
		if verdicts[i] != nil {
			continue
		}
		v := c.Verdict(Memory, o.Seed+uint64(i))
		v.Verdict = NoTime
		switch {
		case len(among) == 0 && working[i]: // a control is no program of ours to blame
			v.Verdict, v.Unknown = NotKnown, broken.Words
		case len(among) > 0 && among[0] == i:
			words := broken.Words
			for _, other := range among[1:] {
				words = fmt.Sprintf("this, or %s under %v, which ran beside it: %s", cells[other].Workload.Name, cells[other].Policy, words)
			}
			v.Verdict, v.Failure = Broken, &Failure{Violation: broken, Words: words}
		}
		take(i, v)
	}
}

func verdictsOf(some []*Verdict) []*Verdict {
	return slices.DeleteFunc(some, func(v *Verdict) bool { return v == nil })
}

// A head keeps the first bytes that were written to it: a program that panics says why first.
type head struct{ b []byte }

func (h *head) Write(p []byte) (int, error) {
	const most = 8 << 10
	h.b = append(h.b, p[:min(len(p), most-len(h.b))]...)
	return len(p), nil
}

func (h *head) String() string { return strings.TrimSpace(string(h.b)) }

// Panicked returns what a process of ours has broken, if it panicked by what it printed, or nil. One that gets no memory or no thread is
// not to blame.
func Panicked(said string) *Violation {
	at := strings.Index(said, "panic: ")
	if fatal := strings.Index(said, "fatal error: "); at < 0 || fatal >= 0 && fatal < at {
		at = fatal
	}
	if at < 0 || strings.Contains(said, "out of memory") || strings.Contains(said, "newosproc") || strings.Contains(said, "failed to create new OS thread") {
		return nil
	}
	const most = 600
	words := said[at:]
	if len(words) > most {
		words = words[:most] + "…"
	}
	return &Violation{Rule: "panic", Words: "the program panicked: " + words}
}
