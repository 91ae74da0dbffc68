// Package fsync runs holdfast's cells that wait for the disk, fio and pg_test_fsync interleaved on
// one disk. It shows whether our clock and our way to sync agree with theirs.
//
// Each trial takes about a second and works on a new file in a new directory, which
// is removed at the end. A tool that is not installed is named and left out.
//
// Start with groups.
package fsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Kind compares syncs.
var Kind = command.Kind{Name: "fsync", Does: "write and fdatasync, O_DSYNC and O_DIRECT, beside fio and pg_test_fsync", Run: run}

const (
	shortest = 100 * time.Millisecond // keeps fio's millisecond at 1 %
	// room bounds a trial's file: it grows for a second, on a disk faster than any we know.
	room = 2 << 30
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f := command.NewFlags("fsync", "grow-8192/fio")
	f.Warm = true
	length := f.Duration("trial", time.Second, "how long a trial is; pg_test_fsync's are whole seconds; with -quick a tenth")
	if err := f.Read(args, stderr); err != nil {
		return err
	}
	if *length < shortest {
		return command.Misuse("-trial=%v: give at least %v, fio counts milliseconds", *length, shortest)
	}
	if f.Quick {
		*length = max(shortest, *length/10)
	}
	tools := findTools()
	all := command.Picked(groups(tools), f.Pick)
	if len(all) == 0 {
		var names []string
		for _, g := range groups(tools) {
			names = append(names, g.Name)
		}
		return command.Misuse("-run=%v matches no arm; the groups are %s", f.Pick, strings.Join(names, ", "))
	}
	ground, err := trial.OpenWorkDir(f.Dir, false)
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer func() { err = errors.Join(err, ground.Close()) }()
	var found []string
	for _, t := range tools {
		if t.path == "" {
			fmt.Fprintf(stderr, "fsync: %s is left out: it is not installed (Debian: apt-get install %s)\n", t.name, t.debian)
		} else {
			found = append(found, t.version())
		}
	}
	if err := ground.Need(room); err != nil {
		return err
	}
	s := &site{ground: ground, length: *length}
	fmt.Fprintf(stderr, "fsync: %d arms of about %v, %d rounds after a warm-up, in %s; seed %d\n", command.Count(all), s.length, f.Count, ground.Dir(), f.Seed)
	return command.Measure(ctx, f, s.trials(all), stdout, fmt.Sprintf("%s, in trials of %v", ground.FileSystem, s.length), found, columns...)
}

func (s *site) trials(all []*group) command.Trials[struct{}, tryFunc] {
	return command.Trials[struct{}, tryFunc]{
		Groups: all,
		Try: func(ctx context.Context, _ *group, a *arm, _ int) (sample, error) {
			command.Settle(s.ground.Dir())
			runtime.GC()
			return a.Do(ctx, s)
		},
	}
}

// columns are operations a second, and the parts of an operation's time where they are reported.
var columns = []command.Column{
	command.Median("ops/s", "%.0f", func(s sample) float64 { return 1e9 / s.Time() }),
	part("write µs", func(s sample) float64 { return float64(s.Write) }),
	part("sync µs", func(s sample) float64 { return float64(s.Sync) }),
	part("rest µs", func(s sample) float64 { return s.Time() - float64(s.Write+s.Sync) }),
}

func part(title string, of func(sample) float64) command.Column {
	c := command.Median(title, "%.1f", func(s sample) float64 { return of(s) / 1e3 })
	return command.Column{Title: title, Of: func(samples []sample) string {
		if len(samples) == 0 || samples[0].Write == 0 || of(samples[0]) == 0 {
			return ""
		}
		return c.Of(samples)
	}}
}
