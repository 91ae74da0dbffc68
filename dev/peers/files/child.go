package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// A trialOrder is the order to a child process: one arm once, or one peer under one fault.
type trialOrder struct {
	Sizes sizes
	Group string
	Arm   string
	Dir   string // does not exist yet
	Fault string
	Peer  string
}

// carryOut runs an order in a child.
func (t trialOrder) carryOut(out io.Writer) (any, error) {
	if t.Fault != "" {
		return t.underFault(out)
	}
	return t.timed(), nil
}

// timed runs the arm in as many fresh directories as make a sample, after one that
// does not count.
func (t trialOrder) timed() (s command.Sample) {
	g, a := command.Find(groups(t.Sizes), t.Group, t.Arm)
	if a == nil {
		return command.Broken(fmt.Errorf("%s/%s: there is no such arm", t.Group, t.Arm))
	}
	if err := t.repeat(g.Job.of(a), a.Do, &s); err != nil {
		return command.Broken(err)
	}
	return s
}

func (t trialOrder) repeat(j job, h how, s *command.Sample) error {
	if err := os.Mkdir(t.Dir, 0o777); err != nil {
		return err
	}
	if err := h.clock(filepath.Join(t.Dir, "warm"), j.small(), &command.Sample{}); err != nil {
		return err
	}
	for i := range j.dirs() {
		if err := h.clock(filepath.Join(t.Dir, fmt.Sprintf("%03d", i)), j, s); err != nil {
			return err
		}
	}
	return nil
}

// small is a job of the same kind, to warm up with.
func (j job) small() job {
	j.Files = min(j.Files, 100)
	j.Lines = min(j.Lines, 2*j.Files)
	return j
}

// clock runs the arm once in a fresh directory and adds up what it took.
func (h how) clock(dir string, j job, sum *command.Sample) error {
	s, err := newSite(dir, j)
	if err != nil {
		return err
	}
	write, err := h.ready(s)
	if err != nil {
		return err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun, cpu := time.Now(), command.CPUTime()
	err = write()
	sum.Elapsed += time.Since(begun)
	sum.CPU += command.CPUTime() - cpu
	runtime.ReadMemStats(&after)
	sum.Bytes += after.TotalAlloc - before.TotalAlloc
	sum.Allocs += after.Mallocs - before.Mallocs
	sum.Units += j.units()
	if err != nil {
		return err
	}
	return s.verify()
}

// trialDir names the directory of a trial; it is not made.
func trialDir(dir string, g *group, a *arm, round int) string {
	word := strings.NewReplacer("/", "-", " ", "-").Replace(g.Name + "-" + a.Name)
	return filepath.Join(dir, fmt.Sprintf("%s-%d", word, round))
}
