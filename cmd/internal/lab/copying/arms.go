package copying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/copysource"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/cstdio"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// copyArms are the cells of the choice. Claims name cells of parts that may not be
// chosen: an audit asks for these alone.
func copyArms(c study.Choice) []study.Arm {
	cells := copyMatrix(c)
	if c.Preset.Name == study.PresetAudit {
		// An audit runs the cells that the claims take.
		cells = nil
		for _, b := range []int64{1, 512, 4096, oddBuffer, 16384, 65536} {
			cells = append(cells, copyCell{timing.Copy, wholeSize, b})
		}
		for _, b := range []int64{1, 2, 4096} {
			cells = append(cells, copyCell{timing.Synced, syncSize, b})
		}
	}
	if c.Only != nil {
		cells = slices.DeleteFunc(cells, func(cell copyCell) bool { return !slices.Contains(c.Only, cell.name()) })
	}
	plan := planned(repeated(cells), copyRound(c), c.SlowerInPlan())
	source := copysource.New(c.Seed)
	source.File = c.Source
	var arms []study.Arm
	for _, cell := range cells {
		arms = append(arms, cell.arm(c, plan.of(cell), source))
	}
	// There is one source for each length.
	var room int64
	made := map[int64]bool{}
	for _, c := range cells {
		if n := plan.of(c); !c.form.Writes() && !made[n] {
			made[n] = true
			room += n
		}
	}
	for i := range arms {
		arms[i].Room = room + arms[i].Bytes
	}
	return append(arms, stdioArms(c)...)
}

// stdioArms are the arms of exercise 13-3.
func stdioArms(c study.Choice) (arms []study.Arm) {
	if !partRuns(study.PartSync, c) || c.Preset.Name == study.PresetAudit {
		return nil
	}
	openC := func(path string) (pointed, error) {
		s, err := cstdio.Create(path, cstdio.Setup{Method: cstdio.Fread, Size: stdioElement, Buffer: study.StdioBuffer})
		return cStream{s}, err
	}
	for _, w := range pointWays() {
		never := ""
		if w.sync && c.NeverSync != "" {
			never = "no file can be synced there: " + c.NeverSync
		}
		arms = append(arms, w.arm(inStdio, cmp.Or(cstdio.Missing(), never), openC), w.arm(inWriter, never, openOurs))
	}
	return arms
}

func openOurs(path string) (pointed, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w, err := holdfast.New(f, holdfast.Buffered(study.StdioBuffer))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	pattern := make([]byte, stdioElement+cstdio.Period)
	cstdio.Fill(pattern, 0)
	return &ourStream{Writer: w, f: f, pattern: pattern}, nil
}

// planned parts the time of a round among the cells. The cheapest are copied whole, as many as fit
// into wholePart of it. A short copy by large buffers fits into the CPU's caches, and says nothing
// of a long one. The others share the rest of the time: none takes longer than the level, unless its
// shortest copy does.
func planned(cells []copyCell, round, slower time.Duration) copyPlan {
	p := copyPlan{slower: slower}
	wholes := make([]time.Duration, 0, len(cells))
	for _, c := range cells {
		wholes = append(wholes, c.time(c.size, slower))
	}
	slices.Sort(wholes)
	room := wholePart(round)
	for _, t := range wholes {
		if room -= t; room < 0 {
			break
		}
		p.whole = t
	}
	low, high := time.Duration(0), round
	for range 40 {
		p.level = low + (high-low)/2
		var all time.Duration
		for _, c := range cells {
			all += c.time(p.of(c), p.slower)
		}
		if all > round {
			high = p.level
		} else {
			low = p.level
		}
	}
	p.level = low
	return p
}

// arm makes the cell an arm that copies n bytes of the whole.
func (c copyCell) arm(choice study.Choice, n int64, source *copysource.Source) study.Arm {
	text := fmt.Sprintf("read(2) and write(2) of %d bytes", c.buffer)
	if c.form.Writes() {
		text = fmt.Sprintf("write(2) of %d bytes", c.buffer)
	}
	switch c.form {
	case timing.Synced, timing.WriteSync:
		text += " with O_SYNC"
	case timing.DSynced, timing.WriteData:
		text += " with O_DSYNC"
	case timing.EndSynced:
		text += ", and fsync(2)"
	case timing.EachData:
		text += ", each with fdatasync(2)"
	case timing.EachSync:
		text += ", each with fsync(2)"
	}
	if c.form == timing.InC {
		text += ", the loop in C"
	}
	if n < c.size {
		text += fmt.Sprintf(", the first %v of %v", holdfast.Size(n), holdfast.Size(c.size))
	}
	a := study.Arm{
		Cell: result.Cell{Name: c.name(), Group: c.group(), Does: text, Records: n, RecordBytes: 1, Writers: 1, Cache: c.cache(choice)},
		Time: c.time(n, choice.Slower), Bytes: n,
		Task: func() trial.Task { return c.task(choice, n, source) },
	}
	if (c.form == timing.DSynced || c.form == timing.WriteData) && study.OpenDataSync == 0 {
		a.Missing = "there is no O_DSYNC on this system"
	}
	if c.form == timing.InC {
		a.Missing = cstdio.Missing()
	}
	if c.syncs() && choice.NeverSync != "" {
		a.Missing = "no file can be synced there: " + choice.NeverSync
	}
	return a
}

// syncs reports whether the form waits for the disk.
func (c copyCell) syncs() bool {
	return !slices.Contains([]timing.Form{timing.Copy, timing.InC, timing.Write}, c.form)
}

// cache is the state of the source: cold where that can be had. A file that is only written has
// none.
func (c copyCell) cache(choice study.Choice) result.Cache {
	if c.form.Writes() {
		return result.NewFile
	}
	return cmp.Or(choice.Cache, result.TryCold)
}

// group is the same for cells that do the same work.
func (c copyCell) group() string { return string(c.form) + beforeSize + holdfast.Size(c.size).String() }

// task copies or writes n bytes.
func (c copyCell) task(choice study.Choice, n int64, source *copysource.Source) trial.Task {
	t := trial.Task{
		Make:   func(path string) error { return source.Make(path, n) },
		Within: filepath.Join("..", copysource.Name(n)), Cache: c.cache(choice),
		Writes: n,
		Do: func(ctx context.Context, clock *trial.Clock) error {
			b := make([]byte, c.buffer)
			clock.Start()
			from, err := os.Open(copysource.Of(clock.Path, n))
			if err != nil {
				return err
			}
			to, err := c.create(clock.Path)
			clock.Lap(trial.Open)
			if err != nil {
				return errors.Join(err, from.Close())
			}
			err = c.loop(ctx, clock, n, func(until int64) (copied int64, err error) {
				if c.form != timing.InC {
					return copyLoop(ctx, to, from, b, until)
				}
				for more := int64(1); copied < until && more > 0 && errors.Join(err, ctx.Err()) == nil; copied += more {
					more, err = cstdio.Copy(to, from, b, min(until-copied, everyCalls*c.buffer))
				}
				return copied, err
			})
			if c.form == timing.EndSynced && err == nil {
				err = to.Sync()
				clock.Lap(trial.Sync)
			}
			err = errors.Join(err, from.Close(), to.Close())
			clock.Lap(trial.Close)
			return err
		},
		Check: func(path string) error { return copysource.Holds(path, source.Sum(n)) },
	}
	if c.form.Writes() {
		block := source.Block(c.buffer)
		t.Make = nil
		t.Do = func(ctx context.Context, clock *trial.Clock) error {
			clock.Start()
			to, err := c.create(clock.Path)
			clock.Lap(trial.Open)
			if err != nil {
				return err
			}
			left, each := n, c.each(to)
			err = c.loop(ctx, clock, n, func(until int64) (int64, error) {
				written, err := writeLoop(ctx, to, block, min(until, left), each)
				left -= written
				return written, err
			})
			err = errors.Join(err, to.Close())
			clock.Lap(trial.Close)
			return err
		}
		t.Check = func(path string) error { return copysource.Holds(path, copysource.Repeated(block, n)) }
	}
	return t
}

// each returns the call that the form makes after each write, or nil.
func (c copyCell) each(to *os.File) func() error {
	switch c.form {
	case timing.EachData:
		h, err := sys.NewHandle(to)
		if err != nil {
			return func() error { return err }
		}
		return func() error { return trial.Datasync(to, h) }
	case timing.EachSync:
		return to.Sync
	}
	return nil
}

// create makes the file that is written to, by the form.
func (c copyCell) create(path string) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	switch c.form {
	case timing.Synced, timing.WriteSync:
		flags |= os.O_SYNC
	case timing.DSynced, timing.WriteData:
		flags |= study.OpenDataSync
	}
	return os.OpenFile(path, flags, 0o666)
}

// loop copies n bytes in two parts, which are one to the clock, and reports what the
// second took.
func (c copyCell) loop(ctx context.Context, clock *trial.Clock, n int64, run func(until int64) (int64, error)) error {
	head, err := run(n / 2 / c.buffer * c.buffer)
	if err != nil {
		return err
	}
	begun := probe.Now()
	tail, err := run(math.MaxInt64)
	took := probe.Since(begun)
	clock.Lap(trial.Write)
	clock.Done(head+tail, head+tail)
	clock.Tell(wholeBytes, float64(c.size))
	clock.Tell(tailBytes, float64(tail))
	clock.Tell(tailNs, float64(took))
	return errors.Join(err, ctx.Err())
}

// everyCalls is how many calls go by for each look at the context.
const everyCalls = 256

// copyLoop is read and write and nothing else, until the end or until that number of bytes is
// copied: io.Copy would have the kernel copy.
func copyLoop(ctx context.Context, to io.Writer, from io.Reader, b []byte, until int64) (copied int64, err error) {
	for calls := 0; copied < until; calls++ {
		if calls%everyCalls == 0 && ctx.Err() != nil {
			return copied, ctx.Err()
		}
		n, err := from.Read(b)
		if err == io.EOF {
			return copied, nil
		}
		if err != nil {
			return copied, err
		}
		if _, err := to.Write(b[:n]); err != nil {
			return copied, err
		}
		copied += int64(n)
	}
	return copied, nil
}

// writeLoop writes the block over and over, the last one only so far as there are
// bytes to write. After each block it calls each, unless that is nil.
func writeLoop(ctx context.Context, to io.Writer, block []byte, until int64, each func() error) (written int64, err error) {
	for calls := 0; written < until; calls++ {
		if calls%everyCalls == 0 && ctx.Err() != nil {
			return written, ctx.Err()
		}
		n, err := to.Write(block[:min(int64(len(block)), until-written)])
		written += int64(n)
		if err == nil && each != nil {
			err = each()
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
