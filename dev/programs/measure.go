package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measure measures both arms of a program in rounds, counts their calls, and crashes them.
func (p program) measure(ctx context.Context, parent string, rounds int, within time.Duration) (m *measurement, err error) {
	m = &measurement{Program: p.name, Day: time.Now().Format(time.DateOnly), Load: load(), Count: p.count}
	err = inDirectory(parent, func(dir string) error {
		source := filepath.Join(dir, "source")
		if err := makeSource(source); err != nil {
			return err
		}
		for round := range rounds {
			for _, arm := range rand.Perm(2) {
				o := order{Program: p.name, After: arm == 1, Source: source, Count: p.count}
				r, err := p.once(ctx, filepath.Join(dir, fmt.Sprint(round, "-", arm)), o)
				if err != nil {
					return err
				}
				f := m.arm(o.After)
				f.Time = append(f.Time, r.Time/float64(p.count))
				f.CPU = append(f.CPU, r.CPU/float64(p.count))
			}
		}
		for _, after := range []bool{false, true} {
			o := order{Program: p.name, After: after, Source: source}
			f := m.arm(after)
			if f.ByName, err = p.calls(ctx, dir, o); err != nil {
				return err
			}
			f.Calls, f.Syncs = sums(f.ByName)
			if err := p.crash(ctx, dir, o, within, f); err != nil {
				return err
			}
		}
		return nil
	})
	return m, err
}

func (m *measurement) arm(after bool) *figures {
	if after {
		return &m.After
	}
	return &m.Before
}

// inDirectory calls do with a new directory, and removes it.
func inDirectory(parent string, do func(dir string) error) error {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, "programs-")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

// once runs an arm in a directory of its own, looks whether all is there, and removes it.
func (p program) once(ctx context.Context, dir string, o order) (r ran, err error) {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.Dir = dir
	cmd, err := o.command(ctx)
	if err != nil {
		return r, err
	}
	text, err := output(cmd)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, err
	}
	found, err := p.arm(o.After).kept(dir)
	if err == nil && len(found) != o.Count {
		err = fmt.Errorf("%d of %d records are there", len(found), o.Count)
	}
	return r, err
}

// output returns what a command prints; its error has the standard error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var told bytes.Buffer
	cmd.Stderr = &told
	text, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(told.String()))
	}
	return text, err
}

// calls returns the system calls of files that a record takes; nil: they can't be counted. What opens and closes the program is
// left out: a run of fewer records is subtracted.
func (p program) calls(ctx context.Context, parent string, o order) (map[string]spent, error) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		return nil, nil
	}
	many := max(2, min(p.count, 2000))
	few := many / 2
	count := func(records int) (all map[string]spent, err error) {
		err = inDirectory(parent, func(dir string) error {
			o.Dir, o.Count = dir, records
			cmd, err := o.command(ctx)
			if err != nil {
				return err
			}
			table := filepath.Join(parent, "strace")
			cmd.Args = []string{strace, "-f", "-c", "-w", "-o", table, "-e", "trace=" + counted, cmd.Path}
			cmd.Path = strace
			if _, err := output(cmd); err != nil {
				return err
			}
			text, err := os.ReadFile(table)
			if err != nil {
				return err
			}
			all = countsOf(string(text))
			return nil
		})
		return all, err
	}
	all, err := count(many)
	if err != nil {
		return nil, err
	}
	some, err := count(few)
	n := float64(many - few)
	for name, x := range all {
		calls := max(0, x.Calls-some[name].Calls) / n
		all[name] = spent{calls, calls * x.Time / x.Calls}
	}
	return all, err
}

// counted are the calls that write, sync, or change or look at files; "?" is for those that this machine lacks.
const counted = "?write,?pwrite64,?writev,?pwritev,?pwritev2,?fsync,?fdatasync,?sync_file_range,?syncfs,?msync,?fallocate,?ftruncate," +
	"?copy_file_range,?sendfile,?ioctl,?open,?openat,?openat2,?close,?rename,?renameat,?renameat2,?link,?linkat,?unlink,?unlinkat,?mkdir,?mkdirat," +
	"?chmod,?fchmod,?fchmodat,?chown,?fchown,?fchownat,?utimensat,?read,?pread64,?fstat,?newfstatat,?statx,?flock," +
	"?listxattr,?llistxattr,?flistxattr,?getxattr,?lgetxattr,?fgetxattr,?setxattr,?lsetxattr,?fsetxattr,?statfs,?fstatfs,?readlink,?readlinkat"

// countsOf reads the table of strace -c: each line has the share, the seconds, the microseconds of a call, the calls, perhaps the errors,
// and the name.
func countsOf(table string) map[string]spent {
	all := map[string]spent{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) < 5 || words[len(words)-1] == "total" {
			continue
		}
		calls, err := strconv.ParseFloat(words[3], 64)
		seconds, timeErr := strconv.ParseFloat(words[1], 64)
		if err == nil && timeErr == nil {
			all[words[len(words)-1]] = spent{calls, 1e9 * seconds}
		}
	}
	return all
}

// sums returns how many calls there are, and the syncs among them; -1: they were not counted. pwritev2 is a sync: wal calls it with
// RWF_DSYNC, and Go itself never does.
func sums(all map[string]spent) (calls, syncs float64) {
	if all == nil {
		return -1, -1
	}
	for name, x := range all {
		calls += x.Calls
		if slices.Contains([]string{"fsync", "fdatasync", "syncfs", "msync", "pwritev2"}, name) {
			syncs += x.Calls
		}
	}
	return calls, syncs
}

// profile writes the CPU profiles of both arms.
func (p program) profile(ctx context.Context, parent, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	return inDirectory(parent, func(dir string) error {
		source := filepath.Join(dir, "source")
		if err := makeSource(source); err != nil {
			return err
		}
		for arm, name := range []string{"before", "after"} {
			o := order{Program: p.name, After: arm == 1, Source: source, Count: p.count, Profile: filepath.Join(to, p.id+"-"+name)}
			if _, err := p.once(ctx, filepath.Join(dir, name), o); err != nil {
				return err
			}
		}
		return nil
	})
}

// makeSource makes a tree to copy: 50 files of 10 KiB in ten directories.
func makeSource(dir string) error {
	for i := range sourceFiles {
		name := filepath.Join(dir, fmt.Sprint("d", i%10), fmt.Sprint("f", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(name, sourceText(i), 0o666); err != nil {
			return err
		}
	}
	return nil
}

const sourceFiles = 50

func sourceText(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "file %9d\n", i), 10<<10/15) }

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// ratios returns those of the same rounds, sorted.
func ratios(a, b []float64) []float64 {
	all := make([]float64, min(len(a), len(b)))
	for i := range all {
		all[i] = a[i] / b[i]
	}
	slices.Sort(all)
	return all
}

// load is the mean number of tasks that ran or waited in the last minute.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(text), " ")
	return cmp.Or(one, "unknown")
}
