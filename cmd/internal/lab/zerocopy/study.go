// Package zerocopy is the study of read and write against the calls that leave the copying
// to the kernel. It copies from a file to a file, and from a file to a TCP connection on
// the loopback. All of it begins with the source in the page cache, which is verified.
//
// In the clock: opening (the stage open), the calls (write), and closing (close). Of
// a connection, which is made before, the last stage is the wait until the receiver
// has reported that it has every byte. The receiver is a second process, as the
// published one was, so that the CPU time of both ends is known apart. It receives
// into memory that it has touched before, 1 MiB a call at most. Not in the clock: a
// copy is read and compared with its source, and the receiver sums up what it has.
//
// Start with [Study].
package zerocopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/copysource"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/filecopy"
)

// Study returns the study, with its arms and claims.
func Study() study.Study {
	return study.Study{
		Name:     "zerocopy",
		Question: "what is saved by leaving the copying of a file to the kernel",
		Source:   study.BufferingDrill,
		Takes:    []string{study.TakesCount},
		Published: []study.Table{{
			Title: "A file of 1 GiB, sent 10 times to a client on the same machine", Source: study.BufferingDrill,
			Head: []string{"Way", "Time taken"},
			Rows: [][]string{{"read-send", fmt.Sprint(publishedReadSend, " seconds")}, {"sendfile", fmt.Sprint(publishedSendfile, " seconds")}},
			Notes: []string{
				"From the page on zero-copy that the document links to; one run of each.",
				"Its read-send reads the whole file into new memory before it sends the first byte; its sendfile begins at once.",
				"Its 4 copies are disk to kernel, kernel to program, program to socket, socket to network card; sendfile saves the two in the middle.",
			},
		}},
		Arms:   zeroArms,
		Twin:   zeroFile(pieces64),
		Show:   showZero,
		Claims: study.ClaimsOf(study.BufferingDrill, zeroClaims),
	}
}

// The ways' names.
const (
	pieces64      = "read+write 64KiB"
	piecesMiB     = "read+write 1MiB"
	wholeFile     = "read+write whole" // as the document's server: all of the file into new memory, and then sent
	mmapWrite     = "mmap+write"
	bySendfile    = "sendfile"
	bySplice      = "splice"
	byCopyRange   = "copy_file_range"
	byReflink     = "reflink"
	byCopy        = "holdfast.Copy"
	groupToFile   = "file to file"
	groupToSocket = "file to TCP"
)

func zeroFile(way string) string   { return groupToFile + ", " + way }
func zeroSocket(way string) string { return groupToSocket + ", " + way }

// A zeroWay is one way to get the bytes of a file elsewhere.
type zeroWay struct {
	name, does string
	missing    string // why it is not to be had here, or empty

	// move moves size bytes from one descriptor to another, and returns how many
	// system calls it has made.
	move func(ctx context.Context, to, from int, size int64) (calls int64, err error)
}

// zeroArms are the kernel's ways, and holdfast.Copy, which chooses among them.
func zeroArms(c study.Choice) []study.Arm {
	source := newZeroSource(c.Seed)
	// The document's file had 1 GiB.
	of := map[string]int64{study.PresetQuick: 64 << 20, study.PresetFull: 1 << 30, study.PresetAudit: 96 << 20}
	size := cmp.Or(c.Count, of[c.Preset.Name], 256<<20)
	var arms []study.Arm
	toFile := func(w zeroWay, task func() trial.Task) {
		a := w.arm(zeroFile(w.name), groupToFile, size)
		a.Bytes, a.Room = size, 2*size
		a.Time += time.Duration(size * copysource.PerByte / 2)
		a.Task = task
		arms = append(arms, a)
	}
	ways := zeroFileWays
	for _, w := range ways {
		if w.name == byReflink {
			w.missing = cmp.Or(w.missing, c.NeverReflink)
		}
		toFile(w, func() trial.Task { return w.fileTask(size, source) })
	}
	toFile(zeroWay{name: byCopy, does: "Copy as it is used: it finds its way, and keeps permissions and times", missing: ways[0].missing},
		func() trial.Task { // Copy opens and closes its files itself, in the clock
			return toNewFile(size, source, func(ctx context.Context, c *trial.Clock) error {
				c.Start()
				used := startUsage()
				_, err := filecopy.File(ctx, c.Path, copysource.Of(c.Path, size), filecopy.Options{})
				c.Lap(trial.Work)
				used.report(c)
				return err
			})
		})
	for _, w := range zeroSocketWays {
		w.missing = cmp.Or(w.missing, study.NoSocket())
		a := w.arm(zeroSocket(w.name), groupToSocket, size)
		a.Room = size
		a.Task = func() trial.Task { return w.socketTask(size, source) }
		arms = append(arms, a)
	}
	return arms
}

func newZeroSource(seed uint64) *zeroSource {
	return &zeroSource{Source: copysource.New(seed), crcs: map[int64]uint32{}}
}

// arm returns the fields that the arms of both groups share.
func (w zeroWay) arm(name, group string, size int64) study.Arm {
	a := study.Arm{
		Cell:    result.Cell{Name: name, Group: group, Does: w.does, Records: size, RecordBytes: 1, Cache: result.Warm},
		Missing: w.missing,
		Time:    copysource.Start + time.Duration(size),
	}
	if w.name == byReflink && w.missing != "" {
		a.Elsewhere = "--dir A_DIRECTORY_ON_BTRFS_OR_XFS"
	}
	return a
}

// toNewFile is the task of copying the source to a file that is not there yet.
func toNewFile(size int64, source *zeroSource, do func(ctx context.Context, c *trial.Clock) error) trial.Task {
	return trial.Task{
		Make:   func(path string) error { return source.Make(path, size) },
		Within: filepath.Join("..", copysource.Name(size)), Cache: result.Warm,
		Writes: size,
		Do:     do,
		Check:  func(path string) error { return copysource.Holds(path, source.Sum(size)) },
	}
}

// fileTask copies a file.
func (w zeroWay) fileTask(size int64, source *zeroSource) trial.Task {
	return toNewFile(size, source, func(ctx context.Context, c *trial.Clock) error { return w.toFile(ctx, c, size) })
}

func (w zeroWay) toFile(ctx context.Context, c *trial.Clock, size int64) error {
	c.Start()
	used := startUsage()
	from, err := os.Open(copysource.Of(c.Path, size))
	if err != nil {
		return err
	}
	to, err := os.Create(c.Path)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	c.Lap(trial.Open)
	calls, err := w.move(ctx, int(to.Fd()), int(from.Fd()), size)
	c.Lap(trial.Write)
	err = errors.Join(err, to.Close(), from.Close())
	c.Lap(trial.Close)
	c.Tell(toldCalls, float64(calls))
	used.report(c)
	return w.named(err)
}

// named says which way has failed.
func (w zeroWay) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", w.name, err)
}

// The arms' figures besides their times.
const (
	toldCalls    = "calls"           // system calls of the loop
	toldCPU      = "cpu_ns"          // of this process, within the clock
	toldReceiver = "receiver_cpu_ns" // of the receiving process
	toldReceives = "receiver_calls"
)

// A usage is the CPU time of this process from a moment on.
type usage struct {
	before probe.Usage
	err    error
}

func startUsage() usage {
	u, err := probe.ProcessUsage()
	return usage{u, err}
}

// report keeps what was used since; nothing where the system does not count it.
func (u usage) report(c *trial.Clock) {
	if used, ok := u.since(); ok {
		c.Tell(toldCPU, float64(used))
	}
}

func (u usage) since() (time.Duration, bool) {
	now, err := probe.ProcessUsage()
	used := now.User + now.System - u.before.User - u.before.System
	return used, err == nil && u.err == nil
}

// The document's times to receive 10 times 1 GiB, in seconds.
const (
	publishedReadSend = 7.175773588009179
	publishedSendfile = 3.71454380400246
)

const tenFiles = 10 << 30 // bytes

// tenTimes is how long 10 GiB would take.
func tenTimes(t result.Trial) float64 { return study.PerRecord(t) * tenFiles }

// taken prints nanoseconds as the document does.
func taken(ns float64) string { return study.OrDash(ns, fmt.Sprintf("%.2f seconds", ns/1e9)) }

// gigabytes returns the throughput of a trial in GB/s.
func gigabytes(t result.Trial) float64 { return float64(t.Size) / float64(t.Elapsed) }

func showZero(e study.Evidence) study.Shown {
	return study.Shown{Tables: []study.Table{zeroTaken(e), zeroFiles(e), zeroSockets(e)}, Learnt: zeroLearnt(e)}
}

func zeroTaken(e study.Evidence) study.Table {
	t := study.Table{
		Title: "10 times 1 GiB to a client on the same machine",
		Notes: []string{"Computed from the time of a byte; the file is in the page cache."},
	}
	return study.Tabulate(t, e.Cells(wholeSocket, sendfileSocket), []study.ArmColumn{
		{Head: "Way", Cell: func(c result.Cell) string {
			return map[string]string{wholeSocket: "read-send", sendfileSocket: "sendfile"}[c.Name]
		}},
		e.IntervalOf("Time taken", tenTimes, taken),
	})
}

// cpuAMiB returns the CPU time for each MiB, from the named value.
func cpuAMiB(name string) study.Metric {
	return func(t result.Trial) float64 { return study.Value(name)(t) / float64(t.Size) * (1 << 20) }
}

// zeroColumns returns the columns of both groups' tables; arms are compared with the arm pieces.
func zeroColumns(e study.Evidence, pieces string, more ...study.ArmColumn) []study.ArmColumn {
	return append([]study.ArmColumn{
		{Head: "Way", Cell: func(c result.Cell) string { return strings.TrimPrefix(c.Name, c.Group+", ") }},
		e.IntervalOf("GB/s", gigabytes, study.Digits),
		e.Against("Time against read+write 64KiB", study.ToArm(pieces)),
	}, more...)
}

func zeroFiles(e study.Evidence) study.Table {
	t := study.Table{
		Title: "From file to file",
		Notes: []string{
			"All copies make new files, from the page cache into the page cache; nothing is synced.",
			"A reflink copies no byte: its time is for a whole file, so the time of a byte falls with the size. On btrfs and xfs copy_file_range and holdfast.Copy do the same.",
			"holdfast.Copy opens, closes and keeps permissions and times within its time; its calls are not counted.",
		},
	}
	return study.Tabulate(t, e.InGroups(groupToFile), zeroColumns(e, zeroFile(pieces64),
		e.MedianOf("CPU a MiB", cpuAMiB(toldCPU), study.Duration), e.MedianOf("System calls", study.Value(toldCalls), study.Whole)))
}

func zeroSockets(e study.Evidence) study.Table {
	t := study.Table{
		Title: "From a file to TCP on the loopback",
		Notes: []string{"The receiver is a process of its own, and copies every byte out of its socket whatever the sender does."},
	}
	return study.Tabulate(t, e.InGroups(groupToSocket), zeroColumns(e, pieceSocket,
		e.MedianOf("Sender's CPU a MiB", cpuAMiB(toldCPU), study.Duration), e.MedianOf("Receiver's CPU a MiB", cpuAMiB(toldReceiver), study.Duration),
		e.MedianOf("Sender's calls", study.Value(toldCalls), study.Whole), e.MedianOf("Receiver's calls", study.Value(toldReceives), study.Whole)))
}

func zeroLearnt(e study.Evidence) string {
	return strings.Join(e.Learnt(
		study.Said{Format: "to a socket, reading the whole file first takes %s the time of sendfile", Over: wholeSocket, Under: sendfileSocket},
		study.Said{Format: "read and write of 64 KiB %s", Over: pieceSocket, Under: sendfileSocket},
		study.Said{Format: "to a file, read and write of 64 KiB take %s the time of copy_file_range", Over: zeroFile(pieces64), Under: zeroFile(byCopyRange)},
		study.Said{Format: "and %s that of holdfast.Copy", Over: zeroFile(pieces64), Under: zeroFile(byCopy)},
	), ", ")
}
