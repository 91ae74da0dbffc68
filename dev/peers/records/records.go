// Package records compares what it costs to write records to a file or a log. They are written
// until all are in the page cache, or until each of them is durable.
//
// A time counts only if the file holds the right bytes: every trial is read back and verified
// after its clock has stopped. Every trial is a process of its own.
//
// Start with appends and durables for the groups, and with clock for the timed span.
package records

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// The kinds of this package.
var (
	Append  = kind("append", "records to one file (append, unbuffered, format, procs, large, close, lives), beside bufio, zap, filestream, dd and the limits", "append/size=40B/goroutines=8/bufio 64KiB", appendGroups)
	Durable = kind("durable", "records that are waited for, on the disk and under syncs of 60 µs to 1 ms, beside pebble, etcd and the limits", "sync=1ms/size=128B/goroutines=64/pebble", durableGroups, callColumns...)
	Latency = kind("latency", "how long one record of 20,000 or 200,000 a second takes, beside zap, and under a lock of the caller beside bufio", "rate=200000/sync=20ms/zap", latencies, append(callColumns[:3:3], dueColumns...)...)
	Idle    = kind("idle", "thousands of writers with little to do, beside zap", "writers=5000/zap", idles, idleColumns...)
	Log     = kind("log", "logs that find each record again, beside pebble, etcd, raft-wal, tidwall, bbolt, badger and SQLite; logs that rotate", "log/goroutines=8/pebble", logGroups)
)

func kind(name, does, example string, groups func() []*group, more ...command.Column) command.Kind {
	return command.Kind{Name: name, Does: does, Run: runner(name, example, groups, more), Carry: command.Order(func(o order, _ io.Writer) (any, error) { return o.carryOut(groups()) })}
}

// A group writes the same records by each of its arms.
type (
	group = command.Group[extra, how]
	arm   = command.Arm[how]
	extra bool // it runs with -full only
)

func appendGroups() []*group {
	return concat(appends(), unbuffered(), formatted(), processors(), large(), lives())
}

func durableGroups() []*group { return concat(durables(), windows()) }

func logGroups() []*group { return concat(logs(), largeLogs(), logSyncs(), logReads(), rotating()) }

func concat(families ...[]*group) (all []*group) {
	for _, f := range families {
		all = append(all, f...)
	}
	return all
}

// An order is one trial.
type order struct {
	Group, Arm string
	Quick      bool
	Dir        string
}

// carryOut runs an order in a child.
func (o order) carryOut(all []*group) (any, error) {
	g, a := command.Find(all, o.Group, o.Arm)
	if g == nil {
		return nil, fmt.Errorf("%s/%s: there is no such arm", o.Group, o.Arm)
	}
	if a.Do.work.procs > 0 {
		runtime.GOMAXPROCS(a.Do.work.procs)
	}
	s, err := try(o.Dir, a.Do, a.Do.work.quick(o.Quick))
	if err != nil {
		s = command.Broken(err)
	}
	return s, nil
}

func runner(kind, example string, groups func() []*group, more []command.Column) func(context.Context, []string, io.Writer, io.Writer) error {
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		f := command.NewFlags(kind, example)
		old := f.String("old", "", "another `build` of this command, whose arms of holdfast take part too")
		full := f.Bool("full", false, "every size of records with every number of goroutines, which takes hours")
		if err := f.Read(args, stderr); err != nil {
			return err
		}
		all := groups()
		if !*full {
			all = slices.DeleteFunc(all, func(g *group) bool { return bool(g.Job) })
		}
		if *old != "" {
			if _, err := os.Stat(*old); err != nil {
				return command.Misuse("-old: %w", err)
			}
			withOld(all)
		}
		if all = command.Picked(all, f.Pick); len(all) == 0 {
			return command.Misuse("-run=%v matches no arm; names look like %s, and -full has more", f.Pick, example)
		}
		return measure(ctx, f, *old, all, stdout, stderr, more)
	}
}

// withOld adds the arms of another build. They are named by the one that they repeat.
func withOld(all []*group) {
	for _, g := range all {
		for _, a := range g.Arms {
			if strings.HasPrefix(a.Name, "holdfast") && a.Note != command.Twin {
				twin := *a
				twin.Name, twin.Note, twin.Do.same = a.Name+" OLD", "the same by the build of -old", a.Name
				g.Arms = append(g.Arms, &twin)
			}
		}
	}
}

func measure(ctx context.Context, f *command.Flags, old string, all []*group, stdout, stderr io.Writer, more []command.Column) (err error) {
	root, err := os.MkdirTemp(f.Dir, "peers-")
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer os.RemoveAll(root)
	memory, err := os.MkdirTemp("/dev/shm", "peers-")
	if err != nil {
		memory = root // there is no file system in memory
	}
	defer os.RemoveAll(memory)
	if err := plan(f, root, all, stderr); err != nil {
		return err
	}
	t := command.Trials[extra, how]{
		Groups: all,
		Ready: func(_ context.Context, _ *group, a *arm) error {
			err := trial.PrepareMemory(root, a.Do.work.quick(f.Quick).bytes())
			command.Settle(root)
			return err
		},
		Try: func(ctx context.Context, g *group, a *arm, _ int) (command.Sample, error) {
			o, build := order{Group: g.Name, Arm: a.Name, Quick: f.Quick, Dir: root}, ""
			if a.Do.work.sync > 0 {
				o.Dir = memory // only the sync is to take its time
			}
			if a.Do.same != "" {
				o.Arm, build = a.Do.same, old
			}
			return command.Trial(ctx, build, f.Kind, o)
		},
	}
	return command.Measure(ctx, f, t, stdout, command.FileSystem(root), versions(), more...)
}

// plan prints what is about to be done and refuses what the disk has no room for.
func plan(f *command.Flags, root string, all []*group, stderr io.Writer) error {
	var most, total int64
	for _, g := range all {
		for _, a := range g.Arms {
			bytes := a.Do.work.quick(f.Quick).bytes()
			most = max(most, bytes)
			total += bytes * int64(f.Count)
		}
	}
	fmt.Fprintf(stderr, "%s: %d arms, %d rounds, %.1f GB in files of at most %.0f MB, one at a time, in %s; seed %d\n",
		f.Kind, command.Count(all), f.Count, float64(total)/1e9, float64(most)/1e6, root, f.Seed)
	if command.FileSystem(root) == "tmpfs" {
		fmt.Fprintf(stderr, "%s: tmpfs is in memory: nothing there is durable, and syncs cost nothing; choose a disk with -dir\n", f.Kind)
	}
	const extra = 1 << 30 // the peers' preallocation and the file system's own blocks
	free, err := sys.FreeSpace(root)
	if err == nil && free < 2*most+extra {
		return fmt.Errorf("-dir: %.1f GB are free, and a trial may take %.1f GB; choose another disk", float64(free)/1e9, float64(2*most+extra)/1e9)
	}
	return nil // where the free room is not known, the run finds out
}

// versions names each peer's.
func versions() []string {
	return command.Versions("go.uber.org/zap", "gopkg.in/natefinch/lumberjack.v2", "github.com/DeRuina/timberjack", "github.com/VictoriaMetrics/VictoriaMetrics",
		"go.etcd.io/etcd/server/v3", "github.com/cockroachdb/pebble/v2", "github.com/hashicorp/raft-wal", "github.com/tidwall/wal", "go.etcd.io/bbolt", "github.com/dgraph-io/badger/v4", "modernc.org/sqlite")
}
