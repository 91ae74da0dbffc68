// Command reach compares holdfast with the best peer on the same work, with the same buffer size on
// both sides. The work is appends, large Writes, short lives, group commit, and the latency of
// Writes beside syncs.
//
//	go run -C peers ./reach -what append,durable,large
//
// Each trial is a process of its own. Each round runs every arm once, in a new order. A ratio
// is formed in each round; the table has its median and quartiles. The arm "again" is the
// first arm once more: its ratio is the noise floor. A second build of this command, given
// with -old, takes part as arms of its own.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	pebble "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/trial"
	"github.com/holdfast-go/holdfast/peers/internal/command"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"
)

// An order is one trial.
type order struct {
	Arm        string // holdfast, lane, bufio, os, dd, pebble, zap, or none: a mutex and no file
	Policy     string
	Goroutines int
	Size       int // of a record
	Records    int // of all goroutines
	Procs      int // GOMAXPROCS, or 0
	Sync       time.Duration
	Durable    bool // each record, with Sync the time of a sync, or 0 for the disk's own
	Fsync      bool // one fdatasync at the end, where the arm has none of its own
	Lives      bool // each record has a file of its own
	Rate       int  // records a second, and the result is p99.99; or 0
	Dir        string
	Old        bool // run by the build of -old
	name       string
}

// A group is arms that do the same work; the first is the peer that ours are compared with.
type group struct {
	name string
	arms []order
}

func main() {
	command.Serve(func(o order, _ io.Writer) (any, error) {
		if o.Procs > 0 {
			runtime.GOMAXPROCS(o.Procs)
		}
		return o.run()
	})
	command.Main("reach", run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("reach", flag.ContinueOnError)
	rounds := f.Int("rounds", 10, "how many times each arm runs")
	dir := f.String("dir", ".", "write in a new directory in `dir`, removed at the end")
	old := f.String("old", "", "a `build` of this command that takes part too")
	whats := f.String("what", "append,lanes,durable,slow,large,close,lives,latency", "which `works` to compare")
	pick := f.String("only", "", "only the groups whose name matches this `regexp`")
	if err := command.Parse(f, args, stderr); err != nil {
		return err
	}
	only, err := regexp.Compile(*pick)
	if err != nil {
		return command.Misuse("-only: %w", err)
	}
	root, err := os.MkdirTemp(*dir, "reach-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	fmt.Fprintf(stdout, "%d rounds, GOMAXPROCS %d, load %s; ratio: the first arm ÷ the arm, of elapsed and of CPU time, median [quartiles]\n", *rounds, runtime.GOMAXPROCS(0), load())
	for _, what := range strings.Split(*whats, ",") {
		groups, ok := all[what]
		if !ok {
			return command.Misuse("%q is none of append, lanes, durable, slow, large, close, lives, latency", what)
		}
		for _, g := range groups() {
			if !only.MatchString(g.name) {
				continue
			}
			if err := g.measure(ctx, stdout, root, *old, *rounds); err != nil {
				return fmt.Errorf("%s: %w", g.name, err)
			}
		}
	}
	return nil
}

// measure runs the arms of a group, and prints a line for each.
func (g group) measure(ctx context.Context, out io.Writer, root, old string, rounds int) error {
	arms := slices.Clone(g.arms)
	again := arms[0]
	again.name += " again"
	arms = append(arms, again)
	for _, a := range g.arms {
		if old != "" && (a.Arm == "holdfast" || a.Arm == "lane") {
			a.Old, a.name = true, a.name+" OLD"
			arms = append(arms, a)
		}
	}
	times := make([][]float64, len(arms))
	cpu := make([][]float64, len(arms))
	for range rounds {
		for _, i := range rand.Perm(len(arms)) {
			a := arms[i]
			a.Dir = root
			text, err := json.Marshal(a)
			if err != nil {
				return err
			}
			cmd, err := command.Child(ctx, json.RawMessage(text))
			if err != nil {
				return err
			}
			if a.Old {
				cmd = exec.CommandContext(ctx, old, cmd.Args[1:]...)
			}
			cmd.Stderr = os.Stderr
			var s command.Sample
			if text, err = cmd.Output(); err == nil {
				err = json.Unmarshal(text, &s)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			times[i] = append(times[i], float64(s.Elapsed)/float64(s.Units))
			cpu[i] = append(cpu[i], float64(s.CPU)/float64(s.Units))
		}
	}
	fmt.Fprintf(out, "\n%s\n", g.name)
	for i, a := range arms {
		var ratios, ofCPU []float64
		for r := range rounds {
			ratios = append(ratios, times[0][r]/times[i][r])
			ofCPU = append(ofCPU, cpu[0][r]/cpu[i][r])
		}
		fmt.Fprintf(out, "  %-20s %11.1f ns %11.1f cpu  %5.2f [%4.2f-%4.2f]  cpu %5.2f [%4.2f-%4.2f]\n", a.name, at(times[i], 0.5), at(cpu[i], 0.5),
			at(ratios, 0.5), at(ratios, 0.25), at(ratios, 0.75), at(ofCPU, 0.5), at(ofCPU, 0.25), at(ofCPU, 0.75))
	}
	return nil
}

// load is how many threads ran or waited for the disk in the last minute, where that is known.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// at returns a quantile.
func at(of []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	x := q * float64(len(sorted)-1)
	low := int(x)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (x-float64(low))*(sorted[high]-sorted[low])
}

var all = map[string]func() []group{
	"append":  func() []group { return appends("holdfast", "buffer=256KiB,sync=never", "buffer=64KiB,sync=never") },
	"lanes":   func() []group { return appends("lane", "buffer=256KiB,sync=never", "buffer=64KiB,sync=never") },
	"durable": func() []group { return durables(0) },
	"slow":    func() []group { return durables(time.Millisecond) },
	"large":   func() []group { return large(false, 128<<20) },
	"close":   func() []group { return large(true, 512<<20) },
	"lives": func() (gs []group) {
		for _, buffer := range []string{"0", "4KiB", "64KiB", "256KiB", "64MiB"} {
			o := order{Goroutines: 1, Size: 40, Records: 5_000, Lives: true}
			gs = append(gs, o.against(fmt.Sprintf("lives buffer=%s", buffer), "os", "holdfast", "buffer="+buffer+",sync=never"))
		}
		return gs
	},
	"latency": func() []group {
		o := order{Goroutines: 8, Size: 40, Records: 400_000, Rate: 200_000}
		g := o.against("latency p99.99 at 200k/s", "zap", "holdfast", "buffer=64KiB,sync=20ms")
		for _, arm := range []string{"lane", "none"} {
			a := g.arms[1]
			a.Arm, a.name = arm, arm
			g.arms = append(g.arms, a)
		}
		return []group{g}
	},
}

// against makes a group of a peer and an arm of ours.
func (o order) against(name, peer, ours, policy string) group {
	o.Policy = policy
	a, b := o, o
	a.Arm, a.name = peer, peer
	b.Arm, b.name = ours, ours
	return group{name, []order{a, b}}
}

func appends(ours string, policies ...string) (gs []group) {
	for _, policy := range policies {
		for _, size := range []int{40, 200, 300, 4096} {
			for _, n := range []int{1, 2, 8, 64, 512, 4096} {
				if size > 40 && n > 64 {
					continue
				}
				o := order{Goroutines: n, Size: size, Records: 4_000_000}
				if size > 40 {
					o.Records = 200_000_000 / size
				}
				g := o.against(fmt.Sprintf("append %s size=%d g=%d", policy, size, n), "bufio", ours, policy)
				if ours == "lane" {
					w := g.arms[1]
					w.Arm, w.name = "holdfast", "holdfast"
					g.arms = append(g.arms, w)
				}
				gs = append(gs, g)
			}
		}
	}
	for _, n := range []int{1, 8, 64, 512} {
		g := group{name: fmt.Sprintf("procs %s size=40 g=%d", policies[0], n)}
		for _, procs := range []int{2, 8, 32} {
			o := order{Goroutines: n, Size: 40, Records: 4_000_000, Procs: procs, Arm: ours, Policy: policies[0]}
			o.name = fmt.Sprintf("%s procs=%d", ours, procs)
			g.arms = append(g.arms, o)
		}
		gs = append(gs, g)
	}
	return gs
}

func durables(sync time.Duration) (gs []group) {
	for _, n := range []int{1, 8, 64, 512, 1024} {
		o := order{Goroutines: n, Size: 128, Records: n * 300, Sync: sync, Durable: true}
		gs = append(gs, o.against(fmt.Sprintf("durable sync=%v g=%d", sync, n), "pebble", "holdfast", "buffer=64KiB,sync=group"))
	}
	o := order{Goroutines: 512, Size: 128, Records: 512 * 300, Sync: sync, Durable: true, Procs: 8}
	return append(gs, o.against(fmt.Sprintf("durable sync=%v g=512 procs=8", sync), "pebble", "holdfast", "buffer=64KiB,sync=group"))
}

func large(fsync bool, total int) (gs []group) {
	syncs, sizes := []string{"never"}, []int{40, 200, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 1 << 20}
	if fsync {
		syncs, sizes = []string{"close", "1s"}, []int{64 << 10, 1 << 20}
	}
	for _, sync := range syncs {
		for _, size := range sizes {
			for _, buffer := range []string{"4KiB", "64KiB", "256KiB", "1MiB", "4MiB", "16MiB", "64MiB"} {
				const most = 300_000
				o := order{Goroutines: 1, Size: size, Records: min(most, total/size), Fsync: fsync}
				g := o.against(fmt.Sprintf("large sync=%s size=%v buffer=%s", sync, holdfast.Size(size), buffer), "os", "holdfast", "buffer="+buffer+",sync="+sync)
				b := g.arms[1]
				b.Arm, b.name = "bufio", "bufio"
				g.arms = append(g.arms, b)
				if fsync {
					b.Arm, b.name = "dd", "dd conv=fdatasync"
					g.arms = append(g.arms, b)
				}
				gs = append(gs, g)
			}
		}
	}
	return gs
}

// run carries the order out, and verifies what is on the disk.
func (o order) run() (s command.Sample, err error) {
	dir, err := os.MkdirTemp(o.Dir, "trial-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	if err := trial.PrepareMemory(dir, int64(o.Size)*int64(o.Records)); err != nil {
		return s, err
	}
	command.Settle(dir)
	policy, err := holdfast.ParsePolicy(o.Policy)
	if err != nil {
		return s, err
	}
	if o.Lives {
		return o.live(dir, policy)
	}
	path := filepath.Join(dir, "log")
	if o.Arm == "dd" {
		return o.dd(path)
	}
	writer, end, err := o.open(path, policy)
	if err != nil {
		return s, err
	}
	each := o.Records / o.Goroutines
	errs := make([]error, o.Goroutines)
	waits := make([][]time.Duration, o.Goroutines)
	var ready, finished sync.WaitGroup
	ready.Add(o.Goroutines)
	gate := make(chan time.Time)
	for g := range o.Goroutines {
		w := writer()
		finished.Go(func() {
			rec := bytes.Repeat([]byte{byte('a' + g%26)}, o.Size)
			ready.Done()
			waits[g], errs[g] = o.write(w, rec, g, each, <-gate)
		})
	}
	ready.Wait()
	start, cpu := time.Now(), command.CPUTime()
	for range o.Goroutines {
		gate <- start
	}
	finished.Wait()
	if !o.Durable {
		err = end()
	}
	s.Elapsed, s.CPU, s.Units = time.Since(start), command.CPUTime()-cpu, each*o.Goroutines
	if o.Durable {
		err = end()
	}
	if o.Rate > 0 {
		sorted := slices.Sorted(slices.Values(slices.Concat(waits...)))
		s.Elapsed, s.Units = sorted[len(sorted)*9999/10000], 1
	}
	if err := cmp.Or(errors.Join(errs...), err); err != nil {
		return s, err
	}
	if o.Arm == "pebble" || o.Arm == "none" {
		return s, nil // pebble's own reader is used by the other commands of this module
	}
	return s, o.verify(path, each)
}

// write writes a goroutine's records, at its part of the rate if there is one. Then it returns how long each took.
func (o order) write(w io.Writer, rec []byte, g, each int, start time.Time) (waits []time.Duration, err error) {
	for i := range each {
		binary.LittleEndian.PutUint64(rec, uint64(g)<<32|uint64(i))
		if o.Rate > 0 {
			due := time.Duration(i*o.Goroutines+g) * time.Second / time.Duration(o.Rate)
			// Not nanosleep(2): a goroutine that makes only such calls keeps its P for 10 ms.
			// A goroutine that a lock has parked waits for that.
			for time.Since(start) < due {
				time.Sleep(due - time.Since(start))
			}
		}
		begin := time.Time{}
		if o.Rate > 0 {
			begin = time.Now()
		}
		if _, err := w.Write(rec); err != nil {
			return waits, err
		}
		if o.Rate > 0 {
			waits = append(waits, time.Since(begin))
		}
	}
	if l, ok := w.(*holdfast.Lane); ok {
		return waits, l.Close()
	}
	return waits, nil
}

// verify reads the records back: all are there, each goroutine's in its order.
func (o order) verify(path string, each int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	next := make([]uint32, o.Goroutines)
	rec, in := make([]byte, o.Size), bufio.NewReaderSize(f, 1<<20)
	for i := 0; ; i++ {
		if _, err := io.ReadFull(in, rec); err == io.EOF && i == each*o.Goroutines {
			return nil
		} else if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		id := binary.LittleEndian.Uint64(rec)
		g := int(id >> 32)
		if g >= len(next) || next[g] != uint32(id) || rec[len(rec)-1] != byte('a'+g%26) {
			return fmt.Errorf("record %d is %#x of goroutine %d", i, uint32(id), g)
		}
		next[g]++
	}
}

// open returns what gives each goroutine its writer, and what ends the work.
func (o order) open(path string, policy holdfast.Policy) (writer func() io.Writer, end func() error, err error) {
	if o.Arm == "pebble" {
		f, err := vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return nil, nil, err
		}
		if o.Sync > 0 {
			f = slowPebble{f, o.Sync}
		}
		f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{PreallocateSize: 4<<20 + 4<<20/10})
		p := &pebbleLog{log: pebble.NewLogWriter(f, 2, pebble.LogWriterConfig{WriteWALSyncOffsets: func() bool { return true }})}
		return func() io.Writer { return &pebbleLane{p: p} }, p.log.Close, nil
	}
	if o.Arm == "none" {
		l := &locked{w: io.Discard}
		return func() io.Writer { return l }, func() error { return nil }, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, nil, err
	}
	if o.Arm == "holdfast" || o.Arm == "lane" {
		var file holdfast.File = f
		if o.Sync > 0 {
			file = slow{f, o.Sync}
		}
		w, err := holdfast.New(file, policy)
		if err != nil {
			return nil, nil, err
		}
		if o.Arm == "lane" {
			return func() io.Writer { return w.Lane() }, w.Close, nil
		}
		return func() io.Writer { return w }, w.Close, nil
	}
	if o.Arm == "zap" { // it syncs when it flushes, under the lock of its writers
		z := &zapcore.BufferedWriteSyncer{WS: f, Size: int(policy.Buffer), FlushInterval: policy.Sync.Every}
		return func() io.Writer { return z }, func() error { return errors.Join(z.Stop(), f.Close()) }, nil
	}
	bare := f.Close
	if o.Fsync {
		bare = func() error { return errors.Join(unix.Fdatasync(int(f.Fd())), f.Close()) }
	}
	if o.Arm == "os" {
		return func() io.Writer { return f }, bare, nil
	}
	b := bufio.NewWriterSize(f, int(policy.Buffer))
	var to io.Writer = b
	if o.Goroutines > 1 {
		to = &locked{w: b}
	}
	return func() io.Writer { return to }, func() error { return errors.Join(b.Flush(), bare()) }, nil
}

// dd lets that program write as many bytes, in blocks of a record, until they are durable. Its start is in the clock.
func (o order) dd(path string) (s command.Sample, err error) {
	c := exec.Command("dd", "if=/dev/zero", "of="+path, fmt.Sprint("bs=", o.Size), fmt.Sprint("count=", o.Records), "conv=fdatasync", "status=none")
	c.Stderr = os.Stderr
	start := time.Now()
	err = c.Run()
	s.Elapsed, s.Units = time.Since(start), o.Records
	if err != nil {
		return s, err
	}
	s.CPU = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	info, err := os.Stat(path)
	if err == nil && info.Size() != int64(o.Size)*int64(o.Records) {
		err = fmt.Errorf("dd wrote %d bytes", info.Size())
	}
	return s, err
}

// live makes a file for each record.
func (o order) live(dir string, policy holdfast.Policy) (s command.Sample, err error) {
	rec := bytes.Repeat([]byte{'a'}, o.Size)
	names := make([]string, o.Records)
	for i := range names {
		names[i] = fmt.Sprintf("%s/%d", dir, i)
	}
	start, cpu := time.Now(), command.CPUTime()
	for _, name := range names {
		var f io.WriteCloser
		if o.Arm == "os" {
			f, err = os.Create(name)
		} else {
			f, err = holdfast.Create(name, policy)
		}
		if err != nil {
			return s, err
		}
		if _, err := f.Write(rec); err != nil {
			return s, err
		}
		if err := f.Close(); err != nil {
			return s, err
		}
	}
	s.Elapsed, s.CPU, s.Units = time.Since(start), command.CPUTime()-cpu, len(names)
	for _, name := range names {
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, rec) {
			return s, fmt.Errorf("%s has %q: %w", name, got, err)
		}
	}
	return s, nil
}

type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	n, err := l.w.Write(p)
	l.mu.Unlock()
	return n, err
}

// slow is a file on a disk that takes a time for each sync.
type slow struct {
	*os.File
	sync time.Duration
}

func (f slow) Sync() error {
	t := unix.NsecToTimespec(int64(f.sync))
	for {
		if err := unix.Nanosleep(&t, &t); err != unix.EINTR { // of the runtime, which preempts goroutines
			return err
		}
	}
}

type slowPebble struct {
	vfs.File
	sync time.Duration
}

func (f slowPebble) Sync() error                { return slow{nil, f.sync}.Sync() }
func (f slowPebble) SyncData() error            { return f.Sync() }
func (f slowPebble) SyncTo(int64) (bool, error) { return true, f.Sync() }

// pebbleLog is the lock that pebble's LogWriter asks its callers for.
type pebbleLog struct {
	mu  sync.Mutex
	log *pebble.LogWriter
}

type pebbleLane struct {
	p    *pebbleLog
	done sync.WaitGroup
	err  error
}

func (l *pebbleLane) Write(p []byte) (int, error) {
	l.done.Add(1)
	l.p.mu.Lock()
	_, err := l.p.log.SyncRecord(p, &l.done, &l.err)
	l.p.mu.Unlock()
	if err != nil {
		return 0, err
	}
	l.done.Wait()
	return len(p), l.err
}
