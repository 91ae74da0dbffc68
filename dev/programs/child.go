package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
)

// orders names the variable of the environment that has a child's order.
const orders = "HOLDFAST_PROGRAM"

// An order is what a child does with an arm: it puts Count records and prints how long that took, or, with Crash, it puts
// records until it is killed, and says of each when it is acknowledged.
type order struct {
	Program     string
	After       bool
	Dir, Source string
	Count       int
	Crash       bool
	Profile     string
	Follow      int // the number of a follower in a cluster: it works until its standard input ends
}

// A run is the measurement of a child, in ns.
type ran struct{ Time, CPU float64 }

// serve does nothing but in a child: there it does what is ordered, and ends the process.
func serve() {
	text := os.Getenv(orders)
	if text == "" {
		return
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.do()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// command returns the child. One that is crashed has the working directory that its crasher gives it.
func (o order) command(ctx context.Context) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Dir = o.Dir
	cmd.Env = append(os.Environ(), orders+"="+string(text), "TMPDIR="+o.Dir) // renameio's temporary files: a trace of calls is of one directory
	return cmd, nil
}

func (p program) arm(after bool) arm {
	if after {
		return p.after
	}
	return p.before
}

func (o order) do() error {
	at := slices.IndexFunc(programs, func(p program) bool { return p.name == o.Program })
	if at < 0 {
		return fmt.Errorf("there is no program %q", o.Program)
	}
	a := programs[at].arm(o.After)
	if o.Follow > 0 {
		return o.follow(a)
	}
	if o.Crash {
		return o.keepOn(a)
	}
	u, err := a.open(place{dir: o.Dir, source: o.Source, policy: logPolicy, order: o})
	if err != nil {
		return err
	}
	if o.Profile != "" {
		f, err := os.Create(o.Profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var next atomic.Uint64
	goroutines := max(1, programs[at].goroutines)
	errs := make([]error, goroutines)
	var group sync.WaitGroup
	cpu, began := cpuTime(), time.Now()
	for g := range goroutines {
		group.Go(func() {
			for n := next.Add(1); n <= uint64(o.Count) && errs[g] == nil; n = next.Add(1) {
				errs[g] = u.put(n)
			}
		})
	}
	group.Wait()
	err = u.close()
	r := ran{Time: float64(time.Since(began)), CPU: float64(cpuTime() - cpu)}
	for _, failed := range append(errs, err) {
		if failed != nil {
			return failed
		}
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// pace is how long a child waits between two records while it is crashed: a crash of some seconds then
// meets more than the first instants of an arm, and a trace of its calls stays small.
const pace = 500 * time.Microsecond

// crashPolicy is the policy of logs in the crashes: periods of a tenth show in a tenth of the time. crashSegment is the size of a
// wal's segments there, of which each state of a power cut is a copy.
var crashPolicy = holdfast.Policy{Buffer: logPolicy.Buffer, FlushEvery: logPolicy.FlushEvery / 10, Sync: holdfast.SyncEvery(logPolicy.Sync.Every / 10)}

const crashSegment = 256 * holdfast.KiB

// keepOn puts records behind those that are there.
func (o order) keepOn(a arm) error {
	found, err := a.kept(o.Dir)
	if err != nil {
		return err
	}
	u, err := a.open(place{dir: o.Dir, source: o.Source, policy: crashPolicy, segment: crashSegment, order: o})
	for n := uint64(len(found)) + 1; err == nil; n++ {
		if err = u.put(n); err == nil {
			fmt.Printf("ack %d %d\n", n, time.Now().UnixNano())
			time.Sleep(pace)
		}
	}
	return err
}

// cpuTime returns what the process has taken of the CPUs.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
