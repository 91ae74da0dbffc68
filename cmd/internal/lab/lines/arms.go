package lines

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// The groups of arms. Each begins with the arm that the others are compared with.
const (
	groupPublished = "lines"     // as published: two modes that do not write the same bytes
	groupEqual     = "equal"     // the same lines in all arms
	groupMillion   = "million"   // the same, more of them
	groupValues    = "values"    // the published benchmark
	groupConstant  = "constant"  // the published loop of 10,000 constant lines
	groupPipe      = "pipe"      // into a pipe
	groupSocket    = "socket"    // into a TCP connection
	groupForgotten = "forgotten" // closed without a flush
	groupCrash     = "crash"     // killed in the middle
	groupBursty    = "bursty"    // flushed after each burst
	groupLoaded    = "loaded"    // while other processes keep all processors busy
	groupHTTP      = "http"      // responses of many short writes, into a TCP connection
	groupExtents   = "extents"   // synced, and their pieces on the disk counted
	groupTouched   = "touched"   // what a write updates
)

// The arms that claims and tables speak of.
const (
	publishedUnbuffered = groupPublished + "/unbuffered"
	publishedBuffered   = groupPublished + "/buffered"
	publishedFormat     = groupPublished + "/format"
	equalWrite          = groupEqual + "/write"
	equalFormat         = groupEqual + "/format"
	equalBufio4         = groupEqual + "/bufio 4KiB"
	equalBufio16        = groupEqual + "/bufio 16KiB"
	equalSynced         = groupEqual + "/bufio 4KiB, sync at the end"
	millionWrite        = groupMillion + "/write"
	millionBufio        = groupMillion + "/bufio 4KiB"
	valuesWrite         = groupValues + "/write"
	valuesBufio         = groupValues + "/bufio 16KiB"
	constantWrite       = groupConstant + "/write"
	forgottenBufio      = groupForgotten + "/bufio 4KiB"
	crashWrite          = groupCrash + "/write"
	crashBufio          = groupCrash + "/bufio 4KiB"
)

// lineCounts are how many lines a preset's arms write. Arms that wait for the disk at each line
// write fewer lines: the time of a line is the same.
type lineCounts struct {
	lines, million, synced, stream, constant int64
	ops                                      int64 // of the benchmark without a buffer; with one there are more
	killed                                   int64
}

// Estimated times of one line, for the plan. A trial and each of its bytes take more
// besides, half of it out of the clock.
const (
	formatTime = 150 * time.Nanosecond
	copyTime   = 50 * time.Nanosecond
	callTime   = 900 * time.Nanosecond
	syncTime   = 150 * time.Microsecond
	socketTime = 6 * time.Microsecond
	spawnTime  = 30 * time.Millisecond
)

func lineArms(c study.Choice) []study.Arm {
	n := lineCounts{lines: 100_000, million: 1_000_000, synced: 1000, stream: 20_000, constant: 10_000, ops: 5, killed: 1000}
	switch c.Preset.Name {
	case study.PresetQuick:
		n.million, n.synced, n.ops = 100_000, 500, 2
	case study.PresetFull:
		n.synced, n.stream, n.ops, n.killed = 10_000, 100_000, 20, 5000
	}
	if c.Count > 0 {
		n.lines = c.Count
		n.synced, n.stream = min(n.synced, c.Count), min(n.stream, c.Count)
	}
	return n.arms(c)
}

func (n lineCounts) arms(c study.Choice) []study.Arm {
	arms := publishedArms(n.lines)
	for _, size := range study.Or(c.Records, []holdfast.Size{0}) {
		arms = append(arms, equalArms(c, n, size)...)
	}
	return slices.Concat(arms,
		wayArms(groupMillion, lineText{format: bufferedLine}, n.million, []wayRow{
			{name: "write", does: "one write a line", way: direct, perRecord: formatTime + callTime},
			{name: "bufio 4KiB", does: "bufio.Writer", way: goBuffer(4*holdfast.KiB, 0), perRecord: formatTime + copyTime},
			{name: "holdfast 64KiB", does: "holdfast.Writer", way: ours(holdfast.Buffered(64 * holdfast.KiB)), perRecord: formatTime + copyTime},
		}),
		valueArms(n.ops),
		wayArms(groupConstant, lineText{format: constantLine}, n.constant, []wayRow{
			{name: "write", does: `one write of "line\n" a line`, way: direct, perRecord: callTime},
			{name: "bufio 4KiB", does: "bufio.Writer", way: goBuffer(4*holdfast.KiB, 0), perRecord: copyTime},
		}),
		streamArms(groupPipe, connectPipe, callTime, "", n.stream),
		streamArms(groupSocket, connectSocket, socketTime, study.NoSocket(), n.stream),
		forgottenArms(n.lines), crashArms(n.killed), burstArms(n.stream), loadedArms(n.stream), httpArms(n.stream/responseWrites), extentArms(),
		[]study.Arm{touchedArm()})
}

// connectSocket returns the two ends of a TCP connection on the loopback.
func connectSocket() (holdfast.File, io.ReadCloser, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	to, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	from, err := l.Accept()
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, nil, errors.Join(err, to.Close())
	}
	return unsynced{to}, from, nil
}

// connectPipe returns the two ends of a pipe.
func connectPipe() (holdfast.File, io.ReadCloser, error) {
	from, to, err := os.Pipe()
	return to, from, err
}

// lineArm is an arm that writes count records of about size/count bytes.
func lineArm(group, way, does string, count, size int64, perRecord time.Duration, task func() trial.Task) study.Arm {
	return study.Arm{
		Cell: result.Cell{
			Name: group + "/" + way, Group: group, Does: does,
			RecordBytes: max(1, size/max(1, count)), Writers: 1, Records: count, LatencyStride: 1,
		},
		Time: 12*time.Millisecond + time.Duration(count)*perRecord + time.Duration(size)*3, Bytes: size, Task: task,
	}
}

// arm returns an arm that does the run.
func (r lineRun) arm(group, way, does string, perRecord time.Duration) study.Arm {
	size := r.text.bytes(r.count)
	a := lineArm(group, way, does, r.count, size, perRecord, r.task)
	a.Writers = r.writers
	if r.way.By == study.Ours {
		a.Policy = r.way.Policy
	}
	if r.way.By == study.Nowhere {
		a.Bytes = 0
	}
	return a
}

func (r lineRun) task() trial.Task {
	size := r.text.bytes(r.count)
	t := trial.Task{Writes: size, Do: func(ctx context.Context, c *trial.Clock) error {
		w, err := r.way.Open(c.Path)
		if err != nil {
			return err
		}
		c.Lap(trial.Open)
		if err := r.write(ctx, w); err != nil {
			return errors.Join(err, w.Close())
		}
		c.Lap(trial.Write)
		err = w.Flush()
		c.Lap(trial.Flush)
		if r.sync {
			err = errors.Join(err, w.Sync())
			c.Lap(trial.Sync)
		}
		err = errors.Join(err, w.Close())
		c.Lap(trial.Close)
		r.report(c, w)
		return err
	}}
	if r.way.By == study.Nowhere {
		t.Writes = 0
	} else {
		t.Check = func(path string) error { return r.text.verifyFile(path, r.count, r.writers) }
	}
	return t
}

func publishedArms(count int64) []study.Arm {
	unbuffered, buffered := modeRun{false, count}, modeRun{true, count}
	format := lineArm(groupPublished, "format", "fmt.Sprintf of each line, nothing written", count,
		buffered.text().bytes(count), formatTime, func() trial.Task {
			return trial.Task{Do: func(_ context.Context, c *trial.Clock) error {
				size := int64(0)
				c.Start()
				for i := range count {
					size += int64(len(fmt.Sprintf(bufferedLine, i)))
				}
				c.Lap(trial.Write)
				c.Done(count, size)
				c.Tell(predictedCalls, 0)
				if want := (lineText{format: bufferedLine}).bytes(count); size != want {
					return fmt.Errorf("%d bytes were formatted, and %d were to be", size, want)
				}
				return nil
			}}
		})
	format.Bytes = 0
	return []study.Arm{
		lineArm(groupPublished, "unbuffered", "one write a line, as published", count, unbuffered.text().bytes(count), formatTime+callTime, unbuffered.task),
		lineArm(groupPublished, "buffered", "bufio.NewWriter and one flush at the end, as published", count, buffered.text().bytes(count), formatTime+copyTime, buffered.task),
		format,
	}
}

// A wayRow is an arm of a group whose arms differ in how they write the same lines.
type wayRow struct {
	name, does string
	way        study.Way
	perRecord  time.Duration
	rest       lineRun // its count, writers, sync and every, where they are not the group's or none
	missing    string
}

// wayArms are the arms of a group that writes count lines of the text.
func wayArms(group string, text lineText, count int64, rows []wayRow) (arms []study.Arm) {
	for _, row := range rows {
		r := row.rest
		r.text, r.way, r.count, r.writers = text, row.way, cmp.Or(r.count, count), max(1, r.writers)
		a := r.arm(group, row.name, row.does, row.perRecord)
		a.Missing = row.missing
		arms = append(arms, a)
	}
	return arms
}

// direct is a write call a line.
var direct = study.Way{By: study.Golang}

func ours(p holdfast.Policy) study.Way { return study.Way{By: study.Ours, Policy: p} }

// equalArms write the same lines in every way. The size is a line's; 0 is as it is.
func equalArms(c study.Choice, n lineCounts, size holdfast.Size) []study.Arm {
	rows := []wayRow{
		{name: "write", does: "one write a line", way: direct, perRecord: formatTime + callTime},
		{name: "format", does: "making each line, nothing written", way: study.Way{By: study.Nowhere}, perRecord: formatTime},
	}
	for _, size := range study.Or(c.Buffers, []holdfast.Size{4 * holdfast.KiB, 16 * holdfast.KiB}) {
		if size > 0 { // without a buffer it is the first arm
			rows = append(rows, wayRow{name: "bufio " + size.String(), does: "bufio.Writer", way: goBuffer(size, 0), perRecord: formatTime + copyTime})
		}
	}
	rows = append(rows, wayRow{name: "bufio 4KiB, flush 1s", does: "bufio.Writer under a lock, flushed by a ticker", way: goBuffer(4*holdfast.KiB, time.Second), perRecord: formatTime + copyTime})
	for _, p := range study.Or(c.Policies, []holdfast.Policy{
		holdfast.Unbuffered(),
		holdfast.Buffered(4 * holdfast.KiB),
		holdfast.Buffered(64 * holdfast.KiB),
		holdfast.Buffered(256 * holdfast.KiB),
		{Buffer: 4 * holdfast.KiB, FlushEvery: time.Second},
		{Buffer: 64 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}},
		holdfast.Durable(),
	}) {
		// A policy that waits for the disk at each Write has fewer lines.
		row := wayRow{name: "holdfast " + p.String(), does: "holdfast.Writer", way: ours(p), perRecord: formatTime + copyTime}
		switch {
		case p.Sync.Waits():
			row.rest.count, row.perRecord = n.synced, syncTime
		case p.Buffer == 0:
			row.perRecord = formatTime + callTime
		}
		rows = append(rows, row)
	}
	noDataSync := ""
	if study.OpenDataSync == 0 {
		noDataSync = "Go knows no O_DSYNC on this system"
	}
	small := goBuffer(4*holdfast.KiB, 0)
	rows = append(rows, []wayRow{
		// These arms call fsync; in the last one goroutines share it.
		{name: "bufio 4KiB, sync at the end", does: "bufio.Writer, one fsync before the close", way: small, perRecord: formatTime + 2*copyTime, rest: lineRun{sync: true}},
		{name: "write, sync at the end", does: "one write a line, one fsync before the close", way: direct, perRecord: formatTime + callTime, rest: lineRun{sync: true}},
		{name: "bufio 4KiB, sync every 1000", does: "bufio.Writer, a flush and an fsync after each 1000 lines", way: small, perRecord: formatTime + 2*copyTime + 2*syncTime/1000, rest: lineRun{sync: true, every: 1000}},
		{name: "write, sync each", does: "one write and one fsync a line", way: direct, perRecord: syncTime, rest: lineRun{count: n.synced, every: 1}},
		{name: "holdfast group, 64 writers", does: "holdfast.Writer, a group commit shared by 64 goroutines", way: ours(holdfast.Durable()), perRecord: syncTime / 8, rest: lineRun{count: n.synced * 8, writers: 64}},
		// The file is opened so that each write reaches the disk.
		{name: "write, O_SYNC", does: "one write a line to a file opened with O_SYNC", way: study.Way{By: study.Golang, Flag: os.O_SYNC}, perRecord: syncTime, rest: lineRun{count: n.synced}},
		{name: "write, O_DSYNC", does: "one write a line to a file opened with O_DSYNC", way: study.Way{By: study.Golang, Flag: study.OpenDataSync}, perRecord: syncTime, rest: lineRun{count: n.synced}, missing: noDataSync},
	}...)
	group := groupEqual
	if size > 0 {
		group += " " + size.String()
	}
	return wayArms(group, lineText{bufferedLine, int(size)}, n.lines, rows)
}

// goBuffer is bufio with a buffer of that size, and a ticker if every is not 0.
func goBuffer(size holdfast.Size, every time.Duration) study.Way {
	return study.Way{By: study.Golang, Policy: holdfast.Policy{Buffer: size, FlushEvery: every}}
}

func valueArms(ops int64) []study.Arm {
	// valuesMore is how many times as many operations there are with a buffer, where
	// one is short.
	const valuesMore = 10
	arm := func(name, does string, r valueRun) study.Arm {
		perRecord := 2 * callTime
		if r.size > 0 {
			perRecord = copyTime
		}
		a := lineArm(groupValues, name, does, r.ops*valueRecords, r.ops*valueBytes, perRecord, r.task)
		if r.by == study.Ours {
			a.Policy = holdfast.Buffered(holdfast.Size(r.size))
		}
		return a
	}
	return []study.Arm{
		arm("write", "two writes a record into a temporary file", valueRun{ops: ops, by: study.Golang}),
		arm("bufio 16KiB", "the same through a bufio.Writer", valueRun{ops: ops * valuesMore, by: study.Golang, size: valueBuffer}),
		arm("write, no slice", "two writes a record, the constant in one slice", valueRun{ops: ops, by: study.Golang, kept: true}),
		arm("bufio 16KiB, no slice", "a bufio.Writer, the constant in one slice", valueRun{ops: ops * valuesMore, by: study.Golang, size: valueBuffer, kept: true}),
		arm("holdfast 16KiB", "the same through a holdfast.Writer", valueRun{ops: ops * valuesMore, by: study.Ours, size: valueBuffer}),
	}
}

func streamArms(group string, connect connector, perCall time.Duration, missing string, count int64) []study.Arm {
	arm := func(name, does string, y study.Way, perRecord time.Duration) study.Arm {
		s := lineStream{lineRun{text: lineText{format: bufferedLine}, count: count, writers: 1, way: y}, connect}
		a := s.arm(group, name, does, perRecord)
		a.Bytes, a.Missing, a.Task = 0, missing, s.task
		return a
	}
	return []study.Arm{
		arm("write", "one write a line", direct, formatTime+perCall),
		arm("bufio 4KiB", "bufio.Writer", goBuffer(4*holdfast.KiB, 0), formatTime+2*copyTime),
		arm("holdfast 64KiB", "holdfast.Writer", ours(holdfast.Buffered(64*holdfast.KiB)), formatTime+2*copyTime),
	}
}

func forgottenArms(count int64) []study.Arm {
	size := killedText.bytes(count)
	arm := func(name, does string, by study.Maker) study.Arm {
		r := forgotten{by: by, buffer: 4 * holdfast.KiB, count: count}
		return lineArm(groupForgotten, name, does, count, size, formatTime+copyTime, r.task)
	}
	theirs := arm("bufio 4KiB", "bufio.Writer, the file closed without a flush", study.Golang)
	own := arm("holdfast 4KiB", "holdfast.Writer, closed without a flush", study.Ours)
	own.Policy = holdfast.Buffered(4 * holdfast.KiB)
	return []study.Arm{theirs, own}
}

func crashArms(atLeast int64) []study.Arm {
	// crashFlush is the flush period of the arms that flush by time and are killed: short, so that
	// many flushes come before the kill.
	const crashFlush = 10 * time.Millisecond
	arm := func(name, does string, y study.Way) study.Arm {
		k := lineCrash{way: y, atLeast: atLeast}
		took := spawnTime + time.Duration(atLeast*3/2/killedLines)*killedPause
		a := lineArm(groupCrash, name, does+", killed", atLeast, killedText.bytes(atLeast), took/time.Duration(atLeast), k.task)
		if y.By == study.Ours {
			a.Policy = y.Policy
		}
		return a
	}
	own := func(p holdfast.Policy) study.Arm {
		return arm("holdfast "+p.String(), "holdfast.Writer", ours(p))
	}
	return []study.Arm{
		arm("write", "one write a line", direct),
		arm("bufio 4KiB", "bufio.Writer without a flush", goBuffer(4*holdfast.KiB, 0)),
		arm("bufio 64KiB, flush 10ms", "bufio.Writer flushed by a ticker", goBuffer(64*holdfast.KiB, crashFlush)),
		own(holdfast.Buffered(4 * holdfast.KiB)),
		own(holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: crashFlush}),
		own(holdfast.Durable()),
	}
}

// burstArms flush a buffer after each burst of lines, as a program does whose lines are to be seen
// at the end of each burst.
func burstArms(count int64) []study.Arm {
	run := lineRun{text: lineText{format: bufferedLine}, count: count, writers: 1, way: direct, burst: true}
	arms := []study.Arm{run.arm(groupBursty, "write", "one write a line", formatTime+callTime)}
	for _, burst := range bursts {
		run.way, run.every = goBuffer(4*holdfast.KiB, 0), burst
		arms = append(arms, run.arm(groupBursty, burstName(burst), "bufio.Writer, flushed after each burst", formatTime+copyTime+callTime/time.Duration(burst)))
	}
	return arms
}

// loadedArms write while second processes spin, two for each processor.
func loadedArms(count int64) []study.Arm {
	arm := func(name, does string, y study.Way, perRecord time.Duration) study.Arm {
		r := lineRun{text: lineText{format: bufferedLine}, count: count, writers: 1, way: y}
		spinners := 2 * runtime.GOMAXPROCS(0)
		a := r.arm(groupLoaded, name, does, 3*perRecord)
		a.Time += spawnTime * time.Duration(spinners)
		a.Task = func() trial.Task {
			t := r.task()
			write := t.Do
			t.Do = func(ctx context.Context, c *trial.Clock) (err error) {
				ctx, stop := context.WithCancel(ctx)
				defer stop()
				for range spinners {
					p, startErr := study.StartCompanion(ctx, c, spinner)
					if startErr != nil {
						return startErr
					}
					defer func() {
						if _, readErr := io.Copy(io.Discard, p.Out); readErr != nil || err != nil {
							stop()
						}
						err = errors.Join(err, p.Wait())
					}()
					defer p.In.Close() // ends it
					if _, err := io.ReadFull(p.Out, make([]byte, 1)); err != nil {
						stop()
						return err
					}
				}
				c.Start()
				return write(ctx, c)
			}
			return t
		}
		return a
	}
	return []study.Arm{
		arm("write", "one write a line, beside two busy processes for each processor", direct, formatTime+callTime),
		arm("bufio 4KiB", "bufio.Writer, beside the same", goBuffer(4*holdfast.KiB, 0), formatTime+copyTime),
	}
}

// spinner is the role of a process that keeps a processor busy.
const spinner = "lines-spinner"

// bursts are how many lines come together.
var bursts = []int64{1, 10, 100}

func burstName(lines int64) string { return fmt.Sprintf("bufio 4KiB, bursts of %d", lines) }

// responseWrites is how many short writes a response takes: five for its head, and twenty lines.
const responseWrites = 25

// response returns the parts of the i-th response of a web server.
func response(i int64) [][]byte {
	line := func(j int) []byte { return fmt.Appendf(nil, "<p>line %d of response %d</p>\n", j, i) }
	size := 0
	for j := range responseWrites - 5 {
		size += len(line(j))
	}
	parts := [][]byte{
		[]byte("HTTP/1.1 200 OK\r\n"), []byte("Content-Type: text/html\r\n"), []byte("Cache-Control: no-store\r\n"),
		fmt.Appendf(nil, "Content-Length: %d\r\n", size), []byte("\r\n"),
	}
	for j := range responseWrites - 5 {
		parts = append(parts, line(j))
	}
	return parts
}

// httpArms send responses to the other end of a connection.
func httpArms(count int64) []study.Arm {
	arm := func(name, does string, y study.Way, perResponse time.Duration) study.Arm {
		var size int64
		for _, p := range response(0) {
			size += int64(len(p))
		}
		a := lineArm(groupHTTP, name, does, count, size*count, perResponse, func() trial.Task { return sendResponses(count, y, connectSocket) })
		a.Bytes, a.Missing = 0, study.NoSocket()
		return a
	}
	return []study.Arm{
		arm("write", "a write for each part of a response", direct, responseWrites*socketTime),
		arm("bufio 4KiB", "bufio.Writer, flushed at the end of each response", goBuffer(4*holdfast.KiB, 0), socketTime),
	}
}

// sendResponses writes count responses, each flushed at its end; all are made before the clock starts.
func sendResponses(count int64, y study.Way, connect connector) trial.Task {
	var want []byte
	r := &reading{done: make(chan struct{})}
	return trial.Task{
		Do: func(ctx context.Context, c *trial.Clock) error {
			all := make([][][]byte, count)
			for i := range all {
				all[i] = response(int64(i))
				want = append(want, bytes.Join(all[i], nil)...)
			}
			r.got = make([]byte, 0, len(want)+1)
			to, from, err := connect()
			if err != nil {
				return err
			}
			go r.run(from)
			w, err := y.Over(to)
			if err != nil {
				<-r.done
				return err
			}
			c.Start()
			for _, parts := range all {
				for _, p := range parts {
					_, failed := w.Write(p)
					err = errors.Join(err, failed)
				}
				err = errors.Join(err, w.Flush(), ctx.Err())
				if err != nil {
					break
				}
			}
			c.Lap(trial.Write)
			err = errors.Join(err, w.Close())
			<-r.done
			c.Lap(trial.Close)
			c.Done(count, int64(len(want)))
			c.Tell(predictedCalls, float64(map[bool]int64{true: 1, false: responseWrites}[y.Policy.Buffer > 0]*count))
			return errors.Join(err, r.err)
		},
		Check: func(string) error {
			if !bytes.Equal(r.got, want) {
				return &trial.ContentError{Reason: fmt.Sprintf("begin %d bytes that are not the responses, of %d", len(r.got), len(want))}
			}
			return nil
		},
	}
}

// extentArms write the same bytes in small calls, in large ones, and in pieces that each
// have to reach the disk.
func extentArms() []study.Arm {
	run := lineRun{text: lineText{format: bufferedLine}, count: 100_000, writers: 1, sync: true}
	arm := func(name, does string, y study.Way, every int64, perRecord time.Duration) study.Arm {
		r := run
		r.way, r.every = y, every
		a := r.arm(groupExtents, name, does, perRecord)
		a.Task = func() trial.Task {
			t := r.task()
			write := t.Do
			t.Do = func(ctx context.Context, c *trial.Clock) error {
				if err := write(ctx, c); err != nil {
					return err
				}
				f, err := os.Open(c.Path)
				if err != nil {
					return err
				}
				if n, err := probe.Extents(f); err == nil {
					c.Tell(extentsTold, float64(n))
				}
				return f.Close()
			}
			return t
		}
		return a
	}
	return []study.Arm{
		arm("write", "one write a line", direct, 0, formatTime+callTime),
		arm("bufio 1MiB", "bufio.Writer with 1 MiB", goBuffer(holdfast.MiB, 0), 0, formatTime+copyTime),
		arm("bufio 4KiB, sync every 10,000", "bufio.Writer, an fsync after each 10,000 lines", goBuffer(4*holdfast.KiB, 0), 10_000, formatTime+copyTime+syncTime/1000),
	}
}

// The arms whose extents are compared.
const (
	extentsSmall = groupExtents + "/write"
	extentsLarge = groupExtents + "/bufio 1MiB"
	extentsTold  = "extents"
)

// touchedArm writes one line to a file whose times are years ago.
func touchedArm() study.Arm {
	line := lineText{format: bufferedLine}
	past := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	return lineArm(groupTouched, "write", "one write to a file, and what fstat(2) reports before and after", 1, line.bytes(1), callTime, func() trial.Task {
		return trial.Task{Do: func(_ context.Context, c *trial.Clock) error {
			f, err := study.CreateNew(c.Path, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			if err := os.Chtimes(c.Path, past, past); err != nil {
				return err
			}
			look, done, err := stater(c.Path)
			if err != nil {
				return err
			}
			defer done()
			before, err := look()
			if err != nil {
				return err
			}
			c.Start()
			_, err = f.Write(line.append(nil, 0))
			c.Lap(trial.Write)
			if err != nil {
				return err
			}
			after, err := look()
			if err != nil {
				return err
			}
			for name, changed := range map[string]bool{
				sizeChanged: before.Size != after.Size, modifiedChanged: !before.Modified.Equal(after.Modified), accessedChanged: !before.Accessed.Equal(after.Accessed),
			} {
				c.Tell(name, map[bool]float64{true: 1}[changed])
			}
			c.Tell(pageBytes, float64(os.Getpagesize()))
			if block, err := probe.BlockBytes(f); err == nil {
				c.Tell(blockBytes, float64(block))
			}
			return nil
		}}
	})
}

// stater returns a function that stats a file, until done. It opens the file itself: only a descriptor of a Disk is one on
// each system.
func stater(path string) (look func() (sys.FileStat, error), done func() error, err error) {
	var disk sys.Disk
	name, err := sys.NewName(path)
	if err != nil {
		return nil, nil, err
	}
	fd, err := disk.OpenFile(sys.AtCwd, name, os.O_WRONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	return func() (sys.FileStat, error) { return disk.StatFile(fd) }, func() error { return disk.Close(fd) }, nil
}

// Figures of the arm that stats a file: 1 for each fact that one write has changed, else 0. It also
// reports the sizes of a page and a block in bytes.
const (
	sizeChanged     = "size_changed"
	modifiedChanged = "mtime_changed"
	accessedChanged = "atime_changed"
	pageBytes       = "page_bytes"
	blockBytes      = "block_bytes"
	touchedWrite    = groupTouched + "/write"
)
