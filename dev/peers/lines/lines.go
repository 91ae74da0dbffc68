// Package lines puts the lines of a file into one file, and into a file for each value of a column, with the command
// holdfast write, and with tee, cat and awk.
//
// A time counts only if each file has the right bytes. All programs read the same file, which the page cache holds, as their
// standard input. The start of a program is in the clock.
//
// Start with groups.
package lines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Kind compares programs that put lines into files.
var Kind = command.Kind{Name: "lines", Does: "lines from standard input to a file, or to one for each value of a column: holdfast write beside tee, cat and awk", Run: run}

type (
	group = command.Group[job, program]
	arm   = command.Arm[program]
	// A job is whether each value of the second column has a file of its own.
	job bool
	// A program is its command line, in which DIR is the directory of its files.
	program struct {
		args   []string
		prints bool // its standard output is the file
	}
)

func groups() []*group {
	write := func(policy, out string, more ...string) program {
		return program{args: append([]string{"holdfast", "write", "--quiet", "--policy", policy, "--out", out}, more...)}
	}
	const never, second = "buffer=64KiB,sync=never", "buffer=64KiB,sync=1s"
	one, each := filepath.Join("DIR", "log"), filepath.Join("DIR", "{}")
	return []*group{
		{Name: "lines/one", Title: "all lines to one file", Unit: "line", Arms: twice(
			&arm{Name: "holdfast", Note: "holdfast write --policy " + never, Do: write(never, one)},
			&arm{Name: "holdfast-1s", Note: "its default policy, " + second + ": a stronger promise than the other arms make", Do: write(second, one)},
			&arm{Name: "tee", Note: "its standard output is /dev/null", Do: program{args: []string{"tee", one}}},
			&arm{Name: "cat", Note: "into the file", Do: program{args: []string{"cat"}, prints: true}},
			&arm{Name: "awk", Note: "{ print > file }", Do: program{args: []string{"awk", "-v", "out=" + one, "{ print > out }"}}})},
		{Name: "lines/column", Title: fmt.Sprintf("a file for each of the %d values of the second column", values), Unit: "line", Job: true, Arms: twice(
			&arm{Name: "holdfast", Note: "holdfast write --split 2 --policy " + never, Do: write(never, each, "--split", "2")},
			&arm{Name: "holdfast-1s", Note: "the same under " + second, Do: write(second, each, "--split", "2")},
			&arm{Name: "awk", Note: "{ print > (dir $2) }", Do: program{args: []string{"awk", "-v", "dir=DIR/", "{ print > (dir $2) }"}}})},
	}
}

// twice adds the twin of the first arm.
func twice(ours *arm, others ...*arm) []*arm {
	twin := *ours
	twin.Name, twin.Note = ours.Name+" (twin)", command.Twin
	return append([]*arm{ours, &twin}, others...)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := command.NewFlags("lines", "lines/column/awk")
	if err := f.Read(args, stderr); err != nil {
		return err
	}
	all := command.Picked(groups(), f.Pick)
	if len(all) == 0 {
		return command.Misuse("-run=%v matches no arm; names look like lines/column/awk", f.Pick)
	}
	root, err := os.MkdirTemp(f.Dir, "peers-")
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer os.RemoveAll(root)
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	if err := command.Build(ctx, root); err != nil {
		return err
	}
	size := 256 << 20
	if f.Quick {
		size /= 10
	}
	s, err := newSite(root, size)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "lines: %d arms, %d rounds of %d MB in %s; seed %d\n", command.Count(all), f.Count, s.size/1e6, root, f.Seed)
	t := command.Trials[job, program]{
		Groups: all,
		Ready: func(context.Context, *group, *arm) error {
			err := trial.PrepareMemory(root, int64(s.size))
			command.Settle(root)
			return err
		},
		Try: func(ctx context.Context, g *group, a *arm, _ int) (command.Sample, error) {
			return s.try(ctx, a.Do, g.Job)
		},
	}
	place := fmt.Sprintf("%d lines of %d bytes on %s", s.lines, len(lineOf(0, 0)), command.FileSystem(root))
	perByte := float64(s.lines) / float64(s.size)
	rate := command.Median("MB/s", "%.0f", func(s command.Sample) float64 { return 1e3 / (s.Time() * perByte) })
	return command.Measure(ctx, f, t, stdout, place, command.Programs(ctx, "tee", "cat", "awk"), rate)
}

// values is how many the second column has.
const values = 100

// lineOf returns a line of 65 bytes, with its line feed.
func lineOf(n, value int) []byte {
	return fmt.Appendf(nil, "%010d v%02d GET /index.html 200 a line as long as many of log\n", n, value)
}

// A site is the input, and what the files must have.
type site struct {
	root, input string
	lines, size int
	all         uint32            // the sum of the input
	of          map[string]uint32 // the sum of each value's lines
}

func newSite(root string, size int) (*site, error) {
	s := &site{root: root, input: filepath.Join(root, "input"), of: map[string]uint32{}}
	f, err := os.Create(s.input)
	if err != nil {
		return nil, err
	}
	var part bytes.Buffer
	for s.size < size && err == nil {
		value := rand.IntN(values)
		line, name := lineOf(s.lines, value), fmt.Sprintf("v%02d", value)
		s.all, s.of[name] = crc32.Update(s.all, crc32.IEEETable, line), crc32.Update(s.of[name], crc32.IEEETable, line)
		part.Write(line)
		s.lines, s.size = s.lines+1, s.size+len(line)
		if part.Len() > 1<<20 || s.size >= size {
			_, err = part.WriteTo(f)
		}
	}
	return s, errors.Join(err, f.Close())
}

// try runs a program once, and looks at its files.
func (s *site) try(ctx context.Context, p program, column job) (took command.Sample, err error) {
	dir, err := os.MkdirTemp(s.root, "out-")
	if err != nil {
		return took, err
	}
	defer os.RemoveAll(dir)
	if took, err = s.time(ctx, p, dir); err != nil {
		return took, err
	}
	if column {
		return took, verify(dir, s.of)
	}
	return took, verify(dir, map[string]uint32{"log": s.all})
}

func (s *site) time(ctx context.Context, p program, dir string) (took command.Sample, err error) {
	var args []string
	for _, a := range p.args {
		args = append(args, strings.ReplaceAll(a, "DIR", dir))
	}
	if args[0] == "holdfast" {
		args[0] = filepath.Join(s.root, "holdfast")
	}
	in, err := os.Open(s.input)
	if err != nil {
		return took, err
	}
	defer in.Close()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stderr = in, &said
	begun, cpu := time.Now(), command.CPUTime()
	if p.prints {
		out, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			return took, err
		}
		defer out.Close()
		cmd.Stdout = out
	}
	err = cmd.Run()
	took = command.Sample{Elapsed: time.Since(begun), CPU: command.CPUTime() - cpu, Units: s.lines}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return took, fmt.Errorf("%s is not installed (%w)", args[0], errors.ErrUnsupported)
	case err != nil:
		return took, fmt.Errorf("%w: %s", err, command.FirstLine(said.String()))
	}
	return took, nil
}

// verify compares the files of a directory with their sums.
func verify(dir string, want map[string]uint32) error {
	found, err := os.ReadDir(dir)
	if err == nil && len(found) != len(want) {
		err = fmt.Errorf("there are %d files, not %d", len(found), len(want))
	}
	for name, sum := range want {
		if err != nil {
			break
		}
		var data []byte
		if data, err = os.ReadFile(filepath.Join(dir, name)); err == nil && crc32.ChecksumIEEE(data) != sum {
			err = fmt.Errorf("%s has not its lines", name)
		}
	}
	return err
}
