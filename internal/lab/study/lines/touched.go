package lines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/probe"
	"github.com/holdfast-go/holdfast/internal/lab/study"
	"github.com/holdfast-go/holdfast/internal/lab/trial"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// What the arm that looks at a file tells: which of its facts one write has changed, as 0
// or 1; and the sizes of a page and a block in bytes.
const (
	sizeChanged     = "size_changed"
	modifiedChanged = "mtime_changed"
	accessedChanged = "atime_changed"
	pageBytes       = "page_bytes"
	blockBytes      = "block_bytes"
	touchedWrite    = groupTouched + "/write"
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
			before, err := sys.Disk{}.StatFile(int(f.Fd()))
			if err != nil {
				return err
			}
			c.Start()
			_, err = f.Write(line.append(nil, 0))
			c.Lap(trial.Write)
			if err != nil {
				return err
			}
			after, err := sys.Disk{}.StatFile(int(f.Fd()))
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

// lineTouched shows what a write updates, beside what the document says.
func lineTouched(e study.Evidence) study.Table {
	t := study.Table{Title: "What a write updates", Head: []string{"Of the file", "published", "here"}}
	if _, ok := e.Cell(touchedWrite); !ok {
		return t
	}
	for _, of := range [][2]string{{"size", sizeChanged}, {"modification time", modifiedChanged}, {"access time", accessedChanged}} {
		here := map[float64]string{0: "left as it was", 1: "updated"}[e.Median(touchedWrite, study.Value(of[1]))]
		t.Rows = append(t.Rows, []string{of[0], "updated", here})
	}
	t.Notes = []string{fmt.Sprintf("By fstat(2) before and after one write to a file with times of 2001. A page has %s bytes here, and a block of this file system %s.",
		study.Whole(e.Median(touchedWrite, study.Value(pageBytes))), study.Whole(e.Median(touchedWrite, study.Value(blockBytes))))}
	return t
}

// The arms whose extents are compared.
const (
	extentsSmall = groupExtents + "/write"
	extentsLarge = groupExtents + "/bufio 1MiB"
	extentsTold  = "extents"
	extentLines  = 100_000
)

// extentArms write the same bytes in small calls, in large ones, and in pieces that each
// have to reach the disk.
func extentArms() []study.Arm {
	run := lineRun{text: lineText{format: bufferedLine}, count: extentLines, writers: 1, sync: true}
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
		arm("write", "one write a line", study.Way{By: study.Golang}, 0, formatTime+callTime),
		arm("bufio 1MiB", "bufio.Writer with 1 MiB", goBuffer(holdfast.MiB, 0), 0, formatTime+copyTime),
		arm("bufio 4KiB, sync every 10,000", "bufio.Writer, an fsync after each 10,000 lines", goBuffer(4*holdfast.KiB, 0), 10_000, formatTime+copyTime+syncTime/1000),
	}
}

// lineExtents shows in how many pieces the files lie on the disk.
func lineExtents(e study.Evidence) study.Table {
	t := study.Table{Title: "Pieces on the disk, after a sync", Head: []string{"Way", "Write calls", "Extents"}}
	arms, _ := armsOf(e, groupExtents)
	for _, arm := range arms {
		t.Rows = append(t.Rows, []string{study.Short(arm), study.Whole(e.Median(arm, writeCalls)), e.AllTrials(arm, study.Value(extentsTold), study.Whole).OrDash()})
	}
	t.Notes = []string{"Extents by FS_IOC_FIEMAP: a dash where the file system does not say."}
	return t
}

// burstArms flush a buffer after so many lines, as a program does whose lines are to be seen
// at the end of each burst.
func burstArms(count int64) []study.Arm {
	run := lineRun{text: lineText{format: bufferedLine}, count: count, writers: 1, way: study.Way{By: study.Golang}, burst: true}
	arms := []study.Arm{run.arm(groupBursty, "write", "one write a line", formatTime+callTime)}
	for _, burst := range bursts {
		run.way, run.every = goBuffer(4*holdfast.KiB, 0), burst
		arms = append(arms, run.arm(groupBursty, burstName(burst), "bufio.Writer, flushed after each burst", formatTime+copyTime+callTime/time.Duration(burst)))
	}
	return arms
}

// bursts are how many lines come together.
var bursts = []int64{1, 10, 100}

func burstName(lines int64) string { return fmt.Sprintf("bufio 4KiB, bursts of %d", lines) }

// responseWrites is how many short writes a response takes: five for its head, and twenty lines.
const responseWrites = 25

// response returns the parts of the i-th response of a web server.
func response(parts [][]byte, i int64) [][]byte {
	line := func(j int) []byte { return fmt.Appendf(nil, "<p>line %d of response %d</p>\n", j, i) }
	size := 0
	for j := range responseWrites - 5 {
		size += len(line(j))
	}
	parts = append(parts[:0], []byte("HTTP/1.1 200 OK\r\n"), []byte("Content-Type: text/html\r\n"), []byte("Cache-Control: no-store\r\n"),
		fmt.Appendf(nil, "Content-Length: %d\r\n", size), []byte("\r\n"))
	for j := range responseWrites - 5 {
		parts = append(parts, line(j))
	}
	return parts
}

// httpArms send responses to the other end of a connection.
func httpArms(count int64) []study.Arm {
	arm := func(name, does string, y study.Way, perResponse time.Duration) study.Arm {
		var size int64
		for _, p := range response(nil, 0) {
			size += int64(len(p))
		}
		a := lineArm(groupHTTP, name, does, count, size*count, perResponse, func() trial.Task { return sendResponses(count, y, connectSocket) })
		a.Bytes, a.Missing = 0, study.NoSocket()
		return a
	}
	return []study.Arm{
		arm("write", "a write for each part of a response", study.Way{By: study.Golang}, responseWrites*socketTime),
		arm("bufio 4KiB", "bufio.Writer, flushed at the end of each response", goBuffer(4*holdfast.KiB, 0), socketTime),
	}
}

// sendResponses writes count responses, each flushed at its end; all are made before.
func sendResponses(count int64, y study.Way, connect connector) trial.Task {
	all := make([][][]byte, count)
	var want []byte
	for i := range all {
		all[i] = response(nil, int64(i))
		want = append(want, bytes.Join(all[i], nil)...)
	}
	r := &reading{got: make([]byte, 0, len(want)+1), done: make(chan struct{})}
	return trial.Task{
		Do: func(ctx context.Context, c *trial.Clock) error {
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

// touchedClaims are what the documents say of a write's side effects, and of what a buffer does for them.
var touchedClaims = []study.Claim{{
	Name: "lines-metadata", Source: study.FileIOExperiment,
	Says: "each write updates the file's size, its modification time and its access time", Arms: []string{touchedWrite},
	Judge: func(e study.Evidence) study.Finding {
		size, modified := e.AllTrials(touchedWrite, study.Value(sizeChanged), study.Whole), e.AllTrials(touchedWrite, study.Value(modifiedChanged), study.Whole)
		f := e.AllTrials(touchedWrite, study.Value(accessedChanged), study.Whole).Judge(study.AtLeast(1), study.NeverSo,
			"all three were updated", "a write marks the modification and the change time; the access time is that of reading (POSIX, write)")
		if f.Measured != "" {
			f.Measured = fmt.Sprintf("of 1 write: size %v, modification time %v, access time %s", size, modified, f.Measured)
		}
		return f
	},
}, {
	Name: "lines-page-4096", Source: study.EfficientBuffering,
	Says: "4096 bytes is the block size of file systems and the page size of most systems", Published: "Linux, BSD, macOS", Arms: []string{touchedWrite},
	Judge: func(e study.Evidence) study.Finding {
		page, block := e.AllTrials(touchedWrite, study.Value(pageBytes), study.Whole), e.AllTrials(touchedWrite, study.Value(blockBytes), study.Whole)
		const elsewhere = "; macOS has pages of 16,384 bytes on Apple's processors, and so may Linux on ARM have 16,384 or 65,536"
		f := page.Judge(study.About(4096, 1), study.NotHere, "so it is here"+elsewhere, "a page has another size here")
		if f.Verdict == study.Holds {
			if g := block.Judge(study.About(4096, 1), study.NotHere, f.Why, "the file system asks for blocks of another size"); g.Verdict == study.NotHere {
				f = g
			}
		}
		f.Measured = fmt.Sprintf("page %s, block %s", page.OrDash(), block.OrDash())
		return f
	},
}, {
	Name: "lines-fragments", Source: study.EfficientBuffering,
	Says: "repeated small writes fragment disk operations", Arms: []string{extentsSmall, extentsLarge},
	Judge: func(e study.Evidence) study.Finding {
		small, large := e.AllTrials(extentsSmall, study.Value(extentsTold), study.Whole), e.AllTrials(extentsLarge, study.Value(extentsTold), study.Whole)
		f := small.Judge(study.AtLeast(large.High+1), study.NotHere, "the same bytes lie in more pieces where they came in small writes",
			"the file system gives the bytes a place when it writes them back, and not at each call: they lie in no more pieces")
		if f.Measured != "" {
			f.Measured = fmt.Sprintf("%v extents of 4 MB in writes of 40 bytes, %v in writes of 1 MiB", small, large)
		}
		return f
	},
}, {
	Name: "lines-bursty", Source: study.EfficientBuffering,
	Says: "the more bursty the I/O, the larger the benefit of a buffer",
	Arms: []string{groupBursty + "/write", groupBursty + "/" + burstName(1), groupBursty + "/" + burstName(100)},
	Judge: func(e study.Evidence) study.Finding {
		even, burst := groupBursty+"/"+burstName(1), groupBursty+"/"+burstName(100)
		gain := func(arm string) string {
			return study.Ratio(e.Ratio(groupBursty+"/write", arm, study.PerRecord)).OrDash()
		}
		f := judgeFaster(e, burst, even, "a buffer that is flushed after each burst has gathered all of it; with single lines it gathers nothing", "the burst gains no more than single lines")
		f.Measured = fmt.Sprintf("gains %s in bursts of 100 lines, %s line by line", gain(burst), gain(even))
		return f
	},
}, {
	Name: "lines-http", Source: study.FileIOExperiment,
	Says: "web servers buffer response bodies: a complete response takes fewer system calls, which reduces the overhead of small ones",
	Arms: []string{groupHTTP + "/write", groupHTTP + "/bufio 4KiB"},
	Judge: func(e study.Evidence) study.Finding {
		calls := func(arm string) string { return study.Digits(e.Median(arm, study.Each(writeCalls))) }
		f := judgeFaster(e, groupHTTP+"/bufio 4KiB", groupHTTP+"/write", "a response is one call and one segment", "the calls that it saves do not show")
		f.Measured = fmt.Sprintf("%s as fast, %s calls a response instead of %s", f.Measured, calls(groupHTTP+"/bufio 4KiB"), calls(groupHTTP+"/write"))
		return f
	},
}, {
	Name: "lines-memory", Source: study.EfficientBuffering,
	Says: "benchmarks show buffered writes to be more efficient in memory allocations", Published: "53,773 → 70,127 bytes, 10,007 → 10,008 allocations",
	Arms: []string{valuesWrite, valuesBufio},
	Judge: func(e study.Evidence) study.Finding {
		without, with := e.AllTrials(valuesWrite, study.Value(study.BytesPerOp), study.Whole), e.AllTrials(valuesBufio, study.Value(study.BytesPerOp), study.Whole)
		f := with.Judge(study.AtMost(without.Low), study.NeverSo, "an operation allocates less through the buffer",
			"the buffer itself is allocated and nothing else is saved; its own table says the same")
		if f.Measured != "" {
			f.Measured = fmt.Sprintf("%v → %v bytes an operation", without, with)
		}
		return f
	},
}}
