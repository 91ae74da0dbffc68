// Package latency is the study of buffering's hidden costs. What does one Write take when
// most only copy and some pay for all? How long does another process wait for a record?
// How much does a killed process lose, and how much memory do the buffers take?
//
// In the clock:
//   - write: every Write by itself, with the two readings of the clock around it,
//     which the arm write/nothing shows. The elapsed time is their sum. Opening and
//     closing the file (which flushes) are apart. Making the record is not in it.
//   - open: an open loop. Records are due by the clock; the latency counts from when
//     one was due until its Write returned, the service time from the call alone.
//   - visible: the writer puts CLOCK_MONOTONIC into the record just before its Write.
//     A second process reads the file and pauses whenever it is at its end. It takes
//     its own time when it has the whole record. The difference is the delay.
//   - killed: a second process writes, and reports by a pipe each Write that returned.
//     It is killed by SIGKILL; then this process reads the file.
//   - memory: the live heap after a garbage collection, with all Writers open.
//
// Start with [Study].
package latency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Study returns the study, with its arms and claims.
func Study() study.Study {
	return study.Study{
		Name:      "latency",
		Question:  "what does buffering hide: which Write pays, and when can another process read its bytes",
		Source:    study.EfficientBuffering + ", " + study.FileIOExperiment,
		Takes:     []string{study.TakesCount, study.TakesRecord, study.TakesBuffer, study.TakesPolicy},
		Published: []study.Table{latencySaid()},
		Arms:      latencyArms,
		Twin:      "write/os.File",
		Show:      showLatency,
		Claims:    latencyClaims(),
	}
}

// latencySaid is the table of the published claims: of all these only one has a figure.
func latencySaid() study.Table {
	t := study.Table{Title: "What the documents say of latency", Source: study.EfficientBuffering + ", " + study.FileIOExperiment, Head: latencyHead}
	for _, c := range latencyClaims() {
		t.Rows = append(t.Rows, []string{c.Says, cmp.Or(c.Published, study.Dash)})
	}
	return t
}

// The groups of the latency study's arms, which begin their names.
const (
	inWrites    = "write"
	inDurable   = "durable" // of these each Write waits for the disk
	inOpenLoop  = "open"
	inSight     = "visible"
	inKilled    = "killed"
	inMemory    = "memory"
	openRate    = 10_000 // records a second
	visibleRate = 5_000
	killedRate  = 20_000
)

// A latencyPlan is how much the arms do.
type latencyPlan struct {
	record  int64 // bytes
	count   int64 // Writes at full speed
	durable int64 // Writes that wait for the disk
	open    int64
	visible int64
	killed  int64 // the least, after which the process may be killed
	choice  study.Choice
}

func newLatencyPlan(c study.Choice) latencyPlan {
	p := latencyPlan{record: 128, count: 50_000, durable: 1000, open: 1000, visible: 1000, killed: 800, choice: c}
	switch {
	case c.Preset.Name == study.PresetQuick:
		p.durable = 500
	case c.Preset.Full:
		p.count, p.durable, p.open, p.visible = 500_000, 10_000, 10_000, 5000
	}
	if len(c.Records) > 0 {
		p.record = int64(c.Records[0])
	}
	if c.Count > 0 {
		p.count = c.Count
		p.durable, p.open, p.visible, p.killed = min(c.Count, p.durable), min(c.Count, p.open), min(c.Count, p.visible), min(c.Count, p.killed)
	}
	return p
}

// unfit says why these records can't be measured, or is empty.
func (p latencyPlan) unfit() string {
	switch {
	case len(p.choice.Records) > 1:
		return fmt.Sprintf("give one record size, not %d", len(p.choice.Records))
	case p.record < leastStamped:
		return fmt.Sprintf("a record of %v has no room for its time, number and checksum; use %dB or more", holdfast.Size(p.record), leastStamped)
	case p.record > int64(study.MaxRecord):
		return fmt.Sprintf("a record of %v is too large; use %v or less", holdfast.Size(p.record), study.MaxRecord)
	}
	return ""
}

func latencyArms(c study.Choice) []study.Arm {
	p := newLatencyPlan(c)
	arms := slices.Concat(p.writeArms(), p.openArms(), p.visibleArms(), p.killedArms(), p.memoryArms())
	if why := p.unfit(); why != "" {
		for i := range arms {
			arms[i].Missing = why
		}
	}
	return arms
}

// arm returns the fields that the arms of all groups share.
func (p latencyPlan) arm(group string, o sink, records int64, does string) study.Arm {
	a := study.Arm{Bytes: records * p.record}
	a.Cell = result.Cell{
		Name: group + "/" + o.name(), Group: group, Does: does, Policy: o.policy,
		RecordBytes: p.record, Writers: 1, Records: records, LatencyStride: 1,
	}
	if o.by == byNothing {
		a.Bytes = 0
	}
	return a
}

// once drops arms of a name that it has seen: a buffer or a policy that was chosen may
// be one that is always run.
func once(arms []study.Arm) []study.Arm {
	seen := map[string]bool{}
	return slices.DeleteFunc(arms, func(a study.Arm) bool {
		again := seen[a.Name]
		seen[a.Name] = true
		return again
	})
}

const settling = 30 * time.Millisecond // preparing a trial, checking and removing what it wrote

func (p latencyPlan) writeArms() (arms []study.Arm) {
	policies := p.firstOf(3,
		holdfast.Buffered(64*holdfast.KiB), flushed(64*holdfast.KiB, 10*time.Millisecond), holdfast.Durable(),
		holdfast.Unbuffered(), holdfast.Buffered(4*holdfast.KiB), holdfast.Buffered(256*holdfast.KiB),
		flushed(64*holdfast.KiB, 100*time.Millisecond), flushed(64*holdfast.KiB, time.Second), holdfast.Periodic(time.Second),
	)
	sinks := []sink{{by: byNothing}, {by: byFile}}
	sinks = append(sinks, p.bufios(4*holdfast.KiB, 64*holdfast.KiB)...)
	for _, o := range append(sinks, p.writers(policies...)...) {
		group, records, each := inWrites, p.count, 300*time.Nanosecond
		switch {
		case o.waitsForDisk():
			group, records, each = inDurable, p.durable, 100*time.Microsecond
		case o.policy.Buffer == 0:
			each = 1500 * time.Nanosecond
		}
		a := p.arm(group, o, records, "one Write after the other, each timed")
		a.Time = settling + time.Duration(records)*each
		a.Task = func() trial.Task { return o.timedWrites(records, p.record) }
		arms = append(arms, a)
	}
	return once(arms)
}

// timedWrites is the task of writing records as fast as can be, each Write timed.
func (o sink) timedWrites(records, size int64) trial.Task {
	h, record := result.NewHistogram(), newStamped(size)
	do := func(ctx context.Context, c *trial.Clock, f io.Writer) error {
		total := time.Duration(0)
		for i := range records {
			if err := ctx.Err(); i%256 == 0 && err != nil {
				return err
			}
			r := record.fill(i, 0)
			begun := probe.Now()
			_, err := f.Write(r)
			took := probe.Since(begun)
			if err != nil {
				return err
			}
			result.Record(h, took)
			total += took
		}
		c.Took(trial.Write, total)
		return c.TellLatency(h)
	}
	return o.task(size, &records, do)
}

func (p latencyPlan) openArms() (arms []study.Arm) {
	policies := p.firstOf(2,
		holdfast.Buffered(64*holdfast.KiB), holdfast.Durable(),
		flushed(64*holdfast.KiB, 10*time.Millisecond), holdfast.Periodic(50*time.Millisecond),
	)
	sinks := append([]sink{{by: byNothing}, {by: byFile}}, p.bufios(64*holdfast.KiB)...)
	for _, o := range append(sinks, p.writers(policies...)...) {
		a := p.arm(inOpenLoop, o, p.open, fmt.Sprintf("%d records a second are due, one Write each", openRate))
		a.Rate = openRate
		a.Time = settling + time.Duration(p.open)*time.Second/openRate
		a.Task = func() trial.Task { return o.openLoop(p.open, p.record) }
		arms = append(arms, a)
	}
	return once(arms)
}

// openLoop is the task of writing records that are due by the clock, whether or not
// those before are written. One that can't keep up is given up after a while: what
// is then due counts with the time that it has waited.
func (o sink) openLoop(records, size int64) trial.Task {
	response, service, record := result.NewHistogram(), result.NewHistogram(), newStamped(size)
	written := records
	do := func(ctx context.Context, c *trial.Clock, f io.Writer) error {
		c.Start()
		b := newBeat(openRate)
		patience := max(200*time.Millisecond, trial.Patience*b.due(records))
		for written = 0; written < records; written++ {
			if err := b.await(ctx, written); err != nil {
				return err
			}
			begun := time.Since(b.began)
			if begun > patience {
				b.giveUp(response, written, records)
				break
			}
			if _, err := f.Write(record.fill(written, 0)); err != nil {
				return err
			}
			done := time.Since(b.began)
			result.Record(service, done-begun)
			result.Record(response, done-b.due(written))
		}
		c.Lap(trial.Write)
		c.Done(written, written*size)
		c.Tell("unserved_records", float64(records-written))
		return errors.Join(c.TellLatency(response), c.TellService(service))
	}
	return o.task(size, &written, do)
}

// giveUp counts records that are due, or will be, with the time that they wait.
func (b beat) giveUp(h *hdrhistogram.Histogram, next, records int64) {
	for now := time.Since(b.began); next < records; next++ {
		result.Record(h, max(0, now-b.due(next)))
	}
}

func (p latencyPlan) visibleArms() (arms []study.Arm) {
	policies := p.firstOf(2,
		holdfast.Buffered(4*holdfast.KiB), flushed(256*holdfast.KiB, 10*time.Millisecond), flushed(256*holdfast.KiB, 100*time.Millisecond),
		holdfast.Unbuffered(), holdfast.Buffered(512), holdfast.Buffered(64*holdfast.KiB), flushed(holdfast.MiB, time.Second),
	)
	sinks := append([]sink{{by: byFile}}, p.bufios(4*holdfast.KiB, 64*holdfast.KiB)...)
	sinks = append(sinks, sink{byBufio, flushed(256*holdfast.KiB, window)})
	for _, o := range append(sinks, p.writers(policies...)...) {
		records := p.visible
		if o.policy.FlushEvery >= time.Second && p.choice.Count == 0 {
			records += int64(o.policy.FlushEvery/time.Second) * visibleRate
		}
		a := p.arm(inSight, o, records, fmt.Sprintf("%d records a second, read by another process", visibleRate))
		a.Rate = visibleRate
		a.Time = 2*settling + time.Duration(records)*time.Second/visibleRate
		a.Missing = noSharedClock()
		a.Task = func() trial.Task { return o.watchedWrites(records, p.record) }
		arms = append(arms, a)
	}
	return once(arms)
}

func (p latencyPlan) killedArms() (arms []study.Arm) {
	policies := p.firstOf(1,
		flushed(256*holdfast.KiB, lossWindow), holdfast.Unbuffered(), holdfast.Buffered(4*holdfast.KiB), holdfast.Buffered(64*holdfast.KiB), holdfast.Durable(),
	)
	sinks := append([]sink{{by: byFile}}, p.bufios(4*holdfast.KiB, 64*holdfast.KiB)...)
	sinks = append(sinks, sink{byBufio, flushed(256*holdfast.KiB, lossWindow)})
	for _, o := range append(sinks, p.writers(policies...)...) {
		a := p.arm(inKilled, o, p.killed, fmt.Sprintf("%d records a second by a process that is killed at a random one", killedRate))
		a.Rate = killedRate
		a.Time = 2*settling + time.Duration(2*p.killed)*time.Second/killedRate
		a.Missing = noSharedClock()
		a.Task = func() trial.Task { return o.killedWrites(p.killed, p.record) }
		arms = append(arms, a)
	}
	return once(arms)
}

// The intervals of the arms that show what a flush by time bounds.
const (
	window     = 100 * time.Millisecond
	lossWindow = 20 * time.Millisecond
)

// noSharedClock says why no delay between two processes can be measured, or is
// empty.
func noSharedClock() string {
	if _, err := probe.Monotonic(); err != nil {
		return err.Error()
	}
	return ""
}

// firstOf returns the policies, or the first few, which show most, in a quick run.
func (p latencyPlan) firstOf(few int, policies ...holdfast.Policy) []holdfast.Policy {
	if p.choice.Preset.Name == study.PresetQuick {
		return policies[:few]
	}
	return policies
}

// flushed is a policy with a buffer and a flush by time.
func flushed(buffer holdfast.Size, every time.Duration) holdfast.Policy {
	return holdfast.Policy{Buffer: buffer, FlushEvery: every}
}

// bufios are bufio.Writers of the buffers chosen, or of these.
func (p latencyPlan) bufios(sizes ...holdfast.Size) (sinks []sink) {
	for _, size := range study.Or(p.choice.Buffers, sizes) {
		sinks = append(sinks, sink{byBufio, holdfast.Buffered(size)})
	}
	return sinks
}

// writers are our Writers of the policies chosen, else of the buffers chosen, else
// of these.
func (p latencyPlan) writers(policies ...holdfast.Policy) (sinks []sink) {
	if len(p.choice.Buffers) > 0 {
		policies = nil
		for _, size := range p.choice.Buffers {
			policies = append(policies, holdfast.Buffered(size))
		}
	}
	for _, policy := range study.Or(p.choice.Policies, policies) {
		sinks = append(sinks, sink{byHoldfast, policy})
	}
	return sinks
}
