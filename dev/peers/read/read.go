// Package read reads the same file with holdfast's Reader, with other libraries, with C's
// stdio and by system calls.
//
// A time counts only if the bytes that were read were right, by a sum over all of them.
// Warm is a file that was read just before. Cold is a file without a page in the page cache,
// as the kernel reports before the clock starts. Opening and closing are in the clock.
//
// Start with groups.
package read

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// Kind compares readers.
var Kind = command.Kind{Name: "read", Does: "a file by bytes, lines and blocks, beside bufio, klauspost/readahead, mmap, C's stdio and read(2), warm and cold", Run: run}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := command.NewFlags("read", "bytes/warm/bufio 4KiB")
	f.Warm = true
	size := 64 * holdfast.MiB
	f.TextVar(&size, "size", size, "the `size` of the file; with -quick 8MiB at most")
	if err := f.Read(args, stderr); err != nil {
		return err
	}
	if size < 1 || size > holdfast.GiB {
		return command.Misuse("-size=%v: give at least 1 and at most %v", size, holdfast.GiB)
	}
	if f.Quick {
		size = min(size, 8*holdfast.MiB)
	}
	all := command.Picked(groups(), f.Pick)
	if len(all) == 0 {
		return command.Misuse("-run=%v matches no arm; names look like lines/cold/bufio.Scanner", f.Pick)
	}
	dir, err := os.MkdirTemp(f.Dir, "peers-")
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer os.RemoveAll(dir)
	s, err := newSite(dir, int(size))
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "read: %d arms, %d rounds after a warm-up, of a file of %v in %s; seed %d\n", command.Count(all), f.Count, size, dir, f.Seed)
	place := fmt.Sprintf("a file of %v on %s", size, command.FileSystem(dir))
	rate := command.Median("MiB/s", "%.0f", func(s command.Sample) float64 { return float64(s.Units) / (1 << 20) / s.Elapsed.Seconds() })
	return command.Measure(ctx, f, s.trials(all), stdout, place, command.Versions("github.com/klauspost/readahead"), rate)
}

// trials are in this process.
func (s *site) trials(all []*group) command.Trials[job, readFile] {
	return command.Trials[job, readFile]{
		Groups: all,
		Try: func(_ context.Context, g *group, a *arm, _ int) (command.Sample, error) {
			return s.try(g.Job, a.Do)
		},
	}
}

// try times an arm once.
func (s *site) try(j job, read readFile) (command.Sample, error) {
	if err := s.prepare(j.cold); err != nil {
		return command.Sample{}, err
	}
	runtime.GC()
	begun, cpu := time.Now(), command.CPUTime()
	got, err := read(s.path, s.size)
	taken := command.Sample{Elapsed: time.Since(begun), CPU: command.CPUTime() - cpu, Units: s.size}
	if want := s.want[j.work]; err == nil && got != want {
		err = fmt.Errorf("what it read is not what the file holds: got %v, want %v", got, want)
	}
	return taken, err
}
