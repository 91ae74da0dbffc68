package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// filesClaims are the claims of a benchmark of many files that are written at once.
// What it says of its own package's inside can't be measured without that package;
// what it says of files, writes a second and the figures themselves can.
//
// In the clock: making, writing and closing every file by a pool of as many workers
// as there are CPUs. No file is removed before the end of the run, see [trial.Task].
func filesClaims() Study {
	return Study{
		Name:     "files",
		Question: "what does a small file cost, among few and among many",
		Source:   writerBenchmarks,
		Arms:     filesArms,
		Claims: []Claim{
			filesCores(), filesRetries(), filesRate(), filesRateWith(), filesBatching(), filesContention(), filesCreate(), filesLinear(), filesBackoff(), filesOldMachine(),
		},
	}
}

// message is the original's: 12 bytes.
const message = "hello world\n"

// block is the room that a small file takes.
const block = 4096

func filesArm(n int) string { return fmt.Sprintf("%d files", n) }

const (
	retriesOff = "1000 files, retries off"
	retriesOn  = "1000 files, retries on"
	createTemp = "CreateTemp apart"
)

func filesArms(c Choice) []Arm {
	arm := func(name string, n int, write func(path string) error) Arm {
		return Arm{
			Cell:  result.Cell{Name: name, Group: "files", Does: fmt.Sprintf("%d files of %d bytes by a pool of workers", n, len(message)), Records: int64(n), RecordBytes: int64(len(message))},
			Time:  time.Duration(n) * 60 * time.Microsecond,
			Bytes: int64(n) * block,
			Task:  func() trial.Task { return filesTask(n, write) },
		}
	}
	plain := func(path string) error { return os.WriteFile(path, []byte(message), 0o666) }
	retrying := func(path string) error { return retried(func() error { return plain(path) }) }
	arms := []Arm{
		arm(filesArm(100), 100, plain), arm(filesArm(300), 300, plain), arm(filesArm(3000), 3000, plain),
		arm(retriesOff, 1000, plain), arm(retriesOn, 1000, retrying),
		{
			Cell: result.Cell{Name: createTemp, Group: "CreateTemp", Does: "os.CreateTemp, the write and the close of each file, apart", Records: temps, RecordBytes: int64(len(message))},
			Time: 20 * time.Millisecond, Bytes: temps * block,
			Task: func() trial.Task {
				return trial.Task{Keep: true, Do: createTemps, Check: func(path string) error { return holdMessages(path, temps) }}
			},
		},
	}
	return kept(arms, c.rounds())
}

// kept gives each arm the room of all: the files of all their trials, with those of
// the warm-up and of the arm that is run twice, stay until the end.
func kept(arms []Arm, rounds int) []Arm {
	all := arms[0].Bytes
	for _, a := range arms {
		all += a.Bytes
	}
	for i := range arms {
		arms[i].Room = all * int64(rounds+1)
	}
	return arms
}

// retried is the published policy: attempts with a doubling pause from 100 ms.
func retried(do func() error) (err error) {
	for pause := 100 * time.Millisecond; pause <= time.Second; pause *= 2 {
		if err = do(); err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return err
}

func filesTask(n int, write func(path string) error) trial.Task {
	return trial.Task{
		Keep: true,
		Do: func(ctx context.Context, c *trial.Clock) error {
			if err := os.Mkdir(c.Path, 0o777); err != nil {
				return err
			}
			c.Start()
			err := inPool(ctx, n, func(i int) error { return write(filepath.Join(c.Path, strconv.Itoa(i))) })
			c.Lap(trial.Write)
			return err
		},
		Check: func(path string) error { return holdMessages(path, n) },
	}
}

// inPool does work n times, by as many workers as there are CPUs.
func inPool(ctx context.Context, n int, work func(i int) error) error {
	var next atomic.Int64
	var pool sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for worker := range errs {
		pool.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[worker] == nil && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				errs[worker] = work(i)
			}
		})
	}
	pool.Wait()
	return errors.Join(errs...)
}

// holdMessages checks that the folder has n files and nothing else, each of them
// with the message.
func holdMessages(folder string, n int) error {
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	if len(files) != n {
		return &trial.ContentError{Reason: fmt.Sprintf("stand %d files, and %d were written", len(files), n)}
	}
	for _, f := range files {
		got, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		if string(got) != message {
			return &trial.ContentError{Reason: fmt.Sprintf("file %s holds %q", f.Name(), got)}
		}
	}
	return nil
}

// temps is how many files createTemps makes.
const temps = 200

// createTemps times the three steps of the original's smallest benchmark apart.
func createTemps(ctx context.Context, c *trial.Clock) error {
	if err := os.Mkdir(c.Path, 0o777); err != nil {
		return err
	}
	c.Start()
	for i := 0; i < temps && ctx.Err() == nil; i++ {
		f, err := os.CreateTemp(c.Path, "message-")
		if err != nil {
			return err
		}
		c.Lap(trial.Open)
		_, err = f.WriteString(message)
		c.Lap(trial.Write)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		c.Lap(trial.Close)
	}
	return nil
}

// cpusOf reads the number of CPUs that Go puts behind a benchmark's name.
func cpusOf(benchmark string) int {
	_, suffix, _ := strings.Cut(benchmark, "-")
	n, err := strconv.Atoi(suffix)
	if err != nil {
		return 1
	}
	return n
}

func filesCores() Claim {
	return Claim{
		Name: "files-64-cores", Source: writerBenchmarks, Says: "64 cores fully utilize the worker pool", Published: "BenchmarkWriter-2",
		Judge: func(Evidence) Finding { return judgeCores("BenchmarkWriter-2", 64) },
	}
}

func judgeCores(benchmark string, cores int) Finding {
	f := Finding{Measured: fmt.Sprintf("GOMAXPROCS=%d", cpusOf(benchmark)), Verdict: Holds, Why: "the benchmark ran on all of them"}
	if cpusOf(benchmark) != cores {
		f.Verdict, f.Why = NeverSo, "the number behind a Go benchmark's name is GOMAXPROCS: it ran on that many CPUs"
	}
	return f
}

func perSecond(x float64) string { return digits(x) + "/s" }

func writesPerSecond(t result.Trial) float64 { return float64(t.Records) / t.Elapsed.Seconds() }

func filesRetries() Claim {
	return Claim{
		Name: "files-8x-retries", Source: writerBenchmarks, Says: "disabling retries is 8 times as fast", Published: "114 ms, 14 ms for 1000 files",
		Arms: []string{retriesOn, retriesOff},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(retriesOn, retriesOff, Elapsed)).judge(about(8, 1.5), NeverSo, "so it is",
				"a retry that is not needed costs nothing; the 100 ms between the two are just one pause of its backoff")
		},
	}
}

// publishedFiles are the files of the run without retries, and its time.
const (
	publishedFiles   = 5500
	publishedSeconds = 0.065
)

func filesRate() Claim {
	return Claim{
		Name: "files-500k", Source: writerBenchmarks, Says: "500,000 writes a second without retries", Published: "0.065 s for 5500 writes",
		Arms: []string{retriesOff},
		Judge: func(e Evidence) Finding {
			return judgeRate(figure(e.Summary(retriesOff, writesPerSecond), perSecond), publishedFiles/publishedSeconds)
		},
	}
}

func judgeRate(m measured, bySource float64) Finding {
	f := m.judge(atLeast(500_000), NotHere, "so many files are written here", "fewer are written here")
	if bySource < 500_000 && f.Verdict != Holds {
		f.Verdict, f.Settle = NeverSo, ""
		f.Why = fmt.Sprintf("its own table is %s writes a second", whole(math.Round(bySource/100)*100))
	}
	return f
}

func filesRateWith() Claim {
	return Claim{
		Name: "files-80k", Source: writerBenchmarks, Says: "80,000 to 100,000 writes a second with retries", Published: "96 rounds of 12.46 ms for 1000 files",
		Arms: []string{retriesOn},
		Judge: func(e Evidence) Finding {
			return figure(e.Summary(retriesOn, writesPerSecond), perSecond).judge(about(90_000, 2), NotHere, "within a factor of two", "not within a factor of two")
		},
	}
}

// batches are the published times of batches, by their number of files.
var batches = []struct {
	files   int
	seconds float64
}{{1500, 0.025}, {3000, 0.110}, {5000, 0.336}}

func filesBatching() Claim {
	return Claim{
		Name: "files-batching", Source: writerBenchmarks, Says: "batching scales well", Published: "17, 37, 67 µs a file in batches of 1500, 3000, 5000",
		Arms: []string{filesArm(3000), filesArm(300)},
		Judge: func(e Evidence) Finding {
			first, last := batches[0], batches[len(batches)-1]
			growth := (last.seconds / float64(last.files)) / (first.seconds / float64(first.files))
			return judgeScaling(ratio(e.Ratio(filesArm(3000), filesArm(300), PerRecord)), growth)
		},
	}
}

// judgeScaling: what scales costs the same for each file. The published figures
// are the claim's own.
func judgeScaling(here measured, published float64) Finding {
	f := Finding{Measured: here.String() + " a file of 3000 against 300", Verdict: Holds, Why: "a file costs no more among many"}
	if published > 1.5 {
		f.Verdict, f.Why = NeverSo, fmt.Sprintf("by its own table a file costs %s as much in the largest batch as in the smallest", times(published))
	}
	return f
}

func filesContention() Claim {
	return Claim{
		Name: "files-contention", Source: writerBenchmarks, Says: "I/O contention makes files dearer the more there are", Published: "10 µs a file, then 12.5, 37, 67",
		Arms: []string{filesArm(3000), filesArm(300)},
		Judge: func(e Evidence) Finding {
			return ratio(e.Ratio(filesArm(3000), filesArm(300), PerRecord)).judge(atLeast(1.5), NotHere, "a file among 3000 costs that many times one among 300",
				"a file among 3000 costs about what one among 300 does, so it was not the files: 65 % of that program's CPU time was a linear search of its own pool")
		},
	}
}

func filesCreate() Claim {
	return Claim{
		Name: "files-create", Source: writerBenchmarks, Says: "creating the files (os.CreateTemp) dominates small runs", Published: "about 10 µs a file",
		Arms: []string{createTemp},
		Judge: func(e Evidence) Finding {
			share := func(t result.Trial) float64 { return float64(t.Open) / float64(t.Elapsed) }
			return figure(e.Summary(createTemp, share), percent).judge(atLeast(0.5), NotHere, "more than half of the time of open, write and close", "less than half of the time of open, write and close")
		},
	}
}

func filesLinear() Claim {
	return Claim{
		Name: "files-memory", Source: writerBenchmarks, Says: "memory grows linearly with the files", Published: "4.6 KiB and 9 allocations a file",
		Arms: []string{filesArm(3000), filesArm(300)},
		Judge: func(e Evidence) Finding {
			allocated := func(t result.Trial) float64 { return float64(t.Allocated) / float64(t.Records) }
			return ratio(e.Ratio(filesArm(3000), filesArm(300), allocated)).judge(about(1, 1.5), NotHere, "as much for each file of 3000 as of 300 here too (os.WriteFile)", "not as much for each file")
		},
	}
}

func filesBackoff() Claim {
	return Claim{
		Name: "files-backoff", Source: writerBenchmarks, Says: "the backoff is capped at 1000 ms", Published: "base 100 ms, cap 1000 ms",
		Judge: func(Evidence) Finding {
			return Finding{Verdict: NotChecked, Why: "it is said of that package's code, which is not run here; its pauses were seen to reach 1600 ms"}
		},
	}
}

func filesOldMachine() Claim {
	return Claim{
		Name: "files-40x", Source: writerBenchmarks, Says: "an EPYC of 64 cores is 40 times as fast as an i7-4510U", Published: "1.2 ms, 47 ms for 100 files",
		Judge: func(Evidence) Finding {
			return Finding{Verdict: NotChecked, Why: "it takes both machines"}
		},
	}
}
