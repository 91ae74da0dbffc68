package browser

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A fixture makes up a run: the times are of no machine.
type fixture struct {
	t      *testing.T
	run    result.Run
	cost   map[string]float64 // nanoseconds a record, by cell
	random *rand.Rand
	made   func(around float64) *result.Latency // nil: latency
}

func newFixture(t *testing.T) *fixture {
	return &fixture{t: t, cost: map[string]float64{}, random: rand.New(rand.NewPCG(1, 2)), run: result.Run{Header: result.Header{
		SchemaVersion: result.SchemaVersion, Program: "holdfast v0.0.0", Study: "policy", Question: "what does each policy cost a writer, and what does a crash take",
		StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Dir: "/data", Seed: 42, Plan: result.Plan{Preset: "default"},
		Machine: []machine.Fact{
			{Name: "CPU model", Value: "made up", Source: "/proc/cpuinfo"}, {Name: "CPUs", Value: "8", Source: "sched_getaffinity"},
			{Name: "operating system", Value: "none", Source: "/etc/os-release"}, {Name: "kernel", Value: "7.1", Source: "uname"}, {Name: "file system", Value: "ext4", Source: "statfs"},
		},
	}}}
}

func (f *fixture) policy(text string) holdfast.Policy {
	p, err := holdfast.ParsePolicy(text)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *fixture) add(c result.Cell, cost float64) {
	f.run.Header.Cells, f.cost[c.Name] = append(f.run.Header.Cells, c), cost
}

// latency is a distribution around a time, with a tail.
func (f *fixture) latency(around float64) *result.Latency {
	if f.made != nil {
		return f.made(around)
	}
	h := result.NewHistogram()
	for range 1500 {
		result.Record(h, time.Duration(around*math.Exp(math.Abs(f.random.NormFloat64()))))
	}
	l, err := result.NewLatency(h, stat.Supports)
	if err != nil {
		f.t.Fatal(err)
	}
	return &l
}

func (f *fixture) trial(c result.Cell, round int) result.Trial {
	cost := f.cost[c.Name] * (1 + 0.02*f.random.NormFloat64())
	write := time.Duration(cost * float64(c.Records))
	m := result.Measurement{
		Records: c.Records, Size: c.Records * c.RecordBytes, Open: 20 * time.Microsecond, Write: write, Flush: write / 50, Sync: 3 * time.Millisecond, Close: 30 * time.Microsecond,
		Usage: result.Usage{User: write / 4, System: write / 3}, Writer: result.WriterCalls{SystemCalls: c.Records / 100, Syncs: 4, LongestSync: 5 * time.Millisecond}, Latency: *f.latency(cost),
	}
	if c.Rate > 0 {
		m.Write = time.Duration(float64(c.Records) / c.Rate * float64(time.Second))
		m.Service, m.Oldest, m.SyncsWriting = f.latency(cost), 1004*time.Millisecond, 3
		m.Latency, m.Usage = *f.latency(cost + 60e3), result.Usage{User: m.Write / 50, System: m.Write / 40}
	}
	if c.Policy.Sync.Mode == holdfast.SyncNever {
		m.Sync, m.Writer.Syncs = 0, 0
	}
	m.Elapsed = m.Open + m.Write + m.Flush + m.Sync + m.Close
	if round == 0 {
		m.SystemCalls = &result.SystemCalls{Total: c.Records/100 + 3, Source: "tracepoints"}
	}
	return result.Trial{Cell: c.Name, Round: round, Measurement: m}
}

// write keeps the run in a file of results.
func (f *fixture) write(rounds int) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "results.jsonl")
	f.run.Header.Plan.Rounds, f.run.Trials = rounds, nil
	start := time.Duration(0)
	for round := range rounds + 1 {
		for i, c := range f.run.Header.Cells {
			one := f.trial(c, round)
			one.Position, one.StartNs = i+1, start
			start += one.Elapsed
			f.run.Trials = append(f.run.Trials, &one)
		}
	}
	f.run.End = &result.End{State: result.Complete, Rounds: rounds, Elapsed: start}
	var b bytes.Buffer
	if err := errors.Join(result.Write(&b, f.run), os.WriteFile(path, b.Bytes(), 0o644)); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// usual is a run as bench makes it: bursts under policies with buffers of these KiB, and trials at a rate.
func usual(t *testing.T, buffers ...int) *fixture {
	f := newFixture(t)
	const record = 128
	burst := func(text string, writers int, cost float64) {
		p := f.policy(text)
		f.add(result.Cell{Name: fmt.Sprintf("%v, %d writers", p, writers), Policy: p, RecordBytes: record, Writers: writers, Records: 20000, LatencyStride: 7}, cost)
	}
	for _, writers := range []int{1, 8} {
		empty := result.Cell{Name: fmt.Sprintf("empty, %d writers", writers), Empty: true, RecordBytes: record, Writers: writers, Records: 20000, LatencyStride: 7}
		f.add(empty, 6)
		for _, buffer := range buffers {
			cost := 30 + 90e3/(float64(buffer)*1024+128)*float64(writers)
			burst(fmt.Sprintf("buffer=%dKiB,sync=never", buffer), writers, cost)
			if buffer >= 4 {
				burst(fmt.Sprintf("buffer=%dKiB,sync=close", buffer), writers, cost*1.02)
				burst(fmt.Sprintf("buffer=%dKiB,flush=100ms,sync=1s", buffer), writers, cost*1.1)
				burst(fmt.Sprintf("buffer=%dKiB,sync=group", buffer), writers, 24e3/float64(writers))
			}
		}
		burst("buffer=0,sync=each", writers, 31e3)
		for _, of := range []string{"buffer=64KiB,sync=never", "buffer=64KiB,sync=group"} {
			twin := f.run.Header.Cells[len(f.run.Header.Cells)-1]
			twin.Policy, twin.Twin = f.policy(of), fmt.Sprintf("%v, %d writers", f.policy(of), writers)
			twin.Name = twin.Twin + "/again"
			f.add(twin, f.cost[twin.Twin])
		}
	}
	for i, text := range []string{"buffer=64KiB,sync=never", "buffer=64KiB,flush=100ms,sync=1s", "buffer=4KiB,sync=never", "buffer=4KiB,flush=100ms,sync=1s"} {
		c := result.Cell{Name: "paced " + text, Policy: f.policy(text), RecordBytes: record, Writers: 1, Records: 32000, Rate: 10000, Every: 1, LatencyStride: 1}
		f.add(c, 200+20*float64(i%2))
		if i == 0 {
			c.Twin, c.Name = c.Name, c.Name+"/again"
			f.add(c, 200)
		}
	}
	return f
}

// few is a small run.
func few(t *testing.T) *fixture {
	f := newFixture(t)
	for _, text := range []string{"buffer=0,sync=never", "buffer=64KiB,sync=never", "buffer=64KiB,sync=close", "buffer=64KiB,sync=group"} {
		p := f.policy(text)
		f.add(result.Cell{Name: p.String(), Policy: p, RecordBytes: 128, Writers: 1, Records: 20000, LatencyStride: 7}, 100+float64(len(f.cost))*500)
	}
	return f
}

// large writes a run of n loads with 100 cells each.
func large(t *testing.T, loads, rounds int) string {
	f := newFixture(t)
	add := func(c result.Cell, cost float64) {
		c.Name, c.RecordBytes, c.Records, c.LatencyStride = fmt.Sprintf("%s, %d writers", c.Name, c.Writers), 128, 20000, 7
		f.add(c, cost)
	}
	for writers := 1; writers <= loads; writers++ {
		add(result.Cell{Name: "empty", Empty: true, Writers: writers}, 6)
		for buffer := 1; buffer < 100; buffer++ {
			p := f.policy(fmt.Sprintf("buffer=%dKiB,sync=never", buffer))
			add(result.Cell{Name: p.String(), Policy: p, Writers: writers}, 30+2*float64(100-buffer))
		}
	}
	one := f.latency(40) // of all: to make one takes longer than the rest
	f.made = func(float64) *result.Latency { return one }
	return f.write(rounds)
}

// hostile writes a run each of whose texts would be obeyed by a page that is not careful.
func hostile(t *testing.T, text string) string {
	f := few(t)
	h := &f.run.Header
	h.Study, h.Question, h.Dir, h.Program, h.SystemCallsUnseen = text, text, "/"+text, text, text
	for i := range h.Machine {
		h.Machine[i].Value, h.Machine[i].Source = text, text
	}
	renamed := func(name string) string {
		if name == "" {
			return ""
		}
		return name + text
	}
	costs := map[string]float64{}
	for i := range h.Cells {
		c := &h.Cells[i]
		costs[renamed(c.Name)] = f.cost[c.Name]
		c.Name, c.Twin, c.Does = renamed(c.Name), renamed(c.Twin), text
	}
	f.cost = costs
	path := f.write(3)
	named := filepath.Join(filepath.Dir(path), `"><script>alert('name')<`+"_script>.jsonl")
	if err := os.Rename(path, named); err != nil {
		t.Fatal(err)
	}
	return named
}
