// Package slopes shows how costs grow with the work: records, goroutines, Writers, paths, files in a batch, the records of
// a log, the trials of a result. A slope of 0 says that a unit of ten times the work costs what it did before.
//
// Start with families.
package slopes

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// A family is one kind of work in several amounts.
type family struct {
	name  string
	unit  string // that a time is of
	sizes []int
	full  []int // with -full too: they take minutes, memory or gigabytes of disk
	run   func(dir string, n int) (cost, error)
}

// A cost is what an amount of work took.
type cost struct {
	time   time.Duration
	units  int
	memory uint64 // bytes of heap that are held at the end, or 0 where nothing is looked at
}

// An order is one trial.
type order struct {
	Family, Dir string
	Size        int
}

// Kind measures the slopes.
var Kind = command.Kind{
	Name: "slopes", Does: "how costs grow from small work to large: records, goroutines, Writers, paths, batches, logs, results", Run: run,
	Carry: command.Order(func(o order, _ io.Writer) (any, error) {
		for _, f := range families {
			if f.name == o.Family {
				c, err := f.run(o.Dir, o.Size)
				if err != nil {
					return command.Broken(err), nil
				}
				return command.Sample{Elapsed: c.time, Units: c.units, Values: []float64{float64(c.memory)}}, nil
			}
		}
		return nil, fmt.Errorf("%s: there is no such family", o.Family)
	}),
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := command.NewFlags("slopes", "paths")
	full := f.Bool("full", false, "the largest amounts too, which take minutes and gigabytes")
	if err := f.Read(args, stderr); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Medians of %d rounds, in %s. The slope tells how the time of one unit grows with their number: 0 is linear in all, 1 is quadratic.\n", f.Count, command.FileSystem(f.Dir))
	matched := false
	for _, one := range families {
		if !f.Pick.MatchString(one.name) {
			continue
		}
		matched = true
		if *full {
			one.sizes = append(one.sizes[:len(one.sizes):len(one.sizes)], one.full...)
		}
		if err := one.measure(ctx, f, stdout, stderr); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	if !matched {
		return command.Misuse("-run=%v matches no family; leave it out for all", f.Pick)
	}
	return nil
}

// measure runs all amounts in each round, and prints a table.
func (one family) measure(ctx context.Context, f *command.Flags, stdout, stderr io.Writer) error {
	times, memory := make([][]float64, len(one.sizes)), make([]float64, len(one.sizes))
	for round := range f.Count {
		for i, n := range one.sizes {
			s, err := one.try(ctx, f.Dir, n)
			if err != nil {
				return fmt.Errorf("%d: %w", n, err)
			}
			times[i] = append(times[i], s.Time())
			memory[i] = max(memory[i], s.Values[0])
		}
		fmt.Fprintf(stderr, "slopes: %s: round %d of %d done\n", one.name, round+1, f.Count)
	}
	medians := make([]float64, len(times))
	for i, t := range times {
		medians[i] = stat.Summarize(t).Median
	}
	fmt.Fprintf(stdout, "\n## %s, slope %.2f\n\n| %s | time of a %s | slope from the row above | memory |\n|--:|--:|--:|--:|\n", one.name, slope(one.sizes, medians), one.name, one.unit)
	for i, n := range one.sizes {
		step, held := "", ""
		if i > 0 {
			step = fmt.Sprintf("%.2f", slope(one.sizes[i-1:i+1], medians[i-1:i+1]))
		}
		if memory[i] > 0 {
			held = fmt.Sprintf("%.3g MB", memory[i]/1e6)
		}
		fmt.Fprintf(stdout, "| %d | %s | %s | %s |\n", n, command.Duration(medians[i]), step, held)
	}
	return nil
}

func (one family) try(ctx context.Context, parent string, n int) (s command.Sample, err error) {
	dir, err := os.MkdirTemp(parent, "slopes-")
	if err != nil {
		return s, fmt.Errorf("-dir: %w", err)
	}
	defer os.RemoveAll(dir)
	return command.Trial(ctx, "", "slopes", order{one.name, dir, n})
}

// slope fits a power of the amount to the times, by least squares of the logarithms.
func slope(sizes []int, times []float64) float64 {
	var x, y, xx, xy float64
	for i, n := range sizes {
		a, b := math.Log(float64(n)), math.Log(times[i])
		x, y, xx, xy = x+a, y+b, xx+a*a, xy+a*b
	}
	n := float64(len(sizes))
	return (n*xy - x*y) / (n*xx - x*x)
}
