package latency

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A buffering is a kind of buffer; the arm holds many at once.
type buffering struct {
	name   string
	policy holdfast.Policy
	each   int64 // known bytes of one; 0: it has no limit
	open   func() (io.Writer, error)
}

const (
	bufioUnsized = "bufio.NewWriter" // of BufioDefault bytes
	bytesBuffer  = "bytes.Buffer"
)

func (p latencyPlan) bufferings() []buffering {
	all := []buffering{
		{bufioUnsized, holdfast.Buffered(study.BufioDefault), study.BufioDefault, func() (io.Writer, error) { return bufio.NewWriter(study.NoSink{}), nil }},
		{bytesBuffer, holdfast.Policy{}, 0, func() (io.Writer, error) { return new(bytes.Buffer), nil }},
	}
	for _, o := range p.bufios(64 * holdfast.KiB) {
		size := int(o.policy.Buffer)
		all = append(all, buffering{o.name(), o.policy, int64(size), func() (io.Writer, error) { return bufio.NewWriterSize(study.NoSink{}, size), nil }})
	}
	for _, o := range p.writers(holdfast.Buffered(4*holdfast.KiB), holdfast.Buffered(64*holdfast.KiB)) {
		if o.policy.Buffer == 0 {
			continue
		}
		all = append(all, buffering{o.name(), o.policy, 2 * int64(o.policy.Buffer), func() (io.Writer, error) { return holdfast.New(study.NoSink{}, o.policy) }})
	}
	return all
}

const (
	// heldMost is the most memory that an arm may hold.
	heldMost = 256 << 20

	// passedOn is how many times its own size goes through each buffer, and
	// passedUnlimited how much through one that has none.
	passedOn        = 4
	passedUnlimited = 4 * study.BufioDefault
)

func (p latencyPlan) memoryArms() (arms []study.Arm) {
	for _, b := range p.bufferings() {
		for _, writers := range p.crowds() {
			a := study.Arm{Time: settling + time.Duration(writers)*50*time.Microsecond}
			a.Cell = result.Cell{
				Name: fmt.Sprintf("%s/%s ×%d", inMemory, b.name, writers), Group: inMemory, Does: "so many are opened, and written to",
				Policy: b.policy, RecordBytes: 1, Writers: writers, Records: int64(writers), LatencyStride: 1,
			}
			if held := b.each * int64(writers); held > heldMost {
				a.Missing = fmt.Sprintf("it would hold %s of memory", humanize.Bytes(int64(held)))
			}
			a.Task = func() trial.Task { return b.held(writers) }
			arms = append(arms, a)
		}
	}
	return once(arms)
}

func (p latencyPlan) crowds() []int {
	if p.choice.Preset.Name == study.PresetQuick {
		return []int{1, 1000}
	}
	return []int{1, 100, 1000}
}

// held is the task of opening and holding the given number of buffers, and writing through them.
func (b buffering) held(writers int) trial.Task {
	return trial.Task{Do: func(_ context.Context, c *trial.Clock) error {
		all := make([]io.Writer, writers)
		before := liveHeap()
		c.Start()
		for i := range all {
			var err error
			if all[i], err = b.open(); err != nil {
				return err
			}
		}
		c.Lap(trial.Open)
		opened := liveHeap()
		c.Start()
		if err := b.passOn(all); err != nil {
			return err
		}
		c.Lap(trial.Write)
		written := liveHeap()
		c.Tell("heap_bytes", opened-before)
		c.Tell("heap_written_bytes", written-before)
		c.Start()
		err := closeAll(all)
		c.Lap(trial.Close)
		return err
	}}
}

// passOn writes some times the buffer's size to each, in pieces that fit into it.
func (b buffering) passOn(all []io.Writer) error {
	piece := make([]byte, 512)
	for _, w := range all {
		size := int64(passedUnlimited)
		if b.each > 0 {
			size = passedOn * b.each
		}
		for ; size > 0; size -= int64(len(piece)) {
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
	}
	return nil
}

func closeAll(all []io.Writer) error {
	for _, w := range all {
		if c, ok := w.(io.Closer); ok {
			if err := c.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// liveHeap is the heap after two garbage collections: a sync.Pool keeps its memory over the first.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
