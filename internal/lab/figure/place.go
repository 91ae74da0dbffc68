package figure

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/machine"
)

// warnOfPlace reports which of the machine's facts make the figures doubtful.
func (f Figures) warnOfPlace() (found []Warning) {
	facts := f.Run.Header.Machine
	if machine.InMemory(facts) {
		found = append(found, newWarning("in-memory",
			fmt.Sprintf("the files lie in memory (%s): no sync reaches a disk, and its cost is not in the figures", machine.Get(facts, "file system").Value),
			"measure in a directory on a disk"))
	}
	if stack, ok := machine.ThinOrStacked(facts); ok {
		found = append(found, newWarning("stacked-device",
			fmt.Sprintf("the device is more than a disk (%s): first writes to a block may cost more than later ones, and the figures are those of the whole stack", stack),
			"measure on a plain disk or partition to know the disk"))
	}
	if machine.InVirtualMachine(facts) {
		found = append(found, newWarning("virtual-machine",
			"this is a virtual machine: its host shares CPUs and disk with others, and a sync is as durable as the host makes it",
			"measure on the machine, and at the hours, that the program will run"))
	}
	if machine.FrequencyScales(facts) {
		found = append(found, newWarning("frequency-scaling",
			fmt.Sprintf("the CPUs change their frequency (governor %s, boost %s), which CPU times follow",
				machine.Get(facts, "CPU governor").Value, machine.Get(facts, "CPU boost").Value),
			"set the governor to performance and switch boost off while measuring"))
	}
	return found
}

// syncDoubtful is the least time of a sync to stable storage, as far as is known: flash
// programs a page in some hundred µs. A faster sync ends in a cache, which may be lost
// with the power if nothing protects it.
const syncDoubtful = 50 * time.Microsecond

// warnOfSync reports a disk that may report "durable" too early, with the cell that shows
// it most. In memory that is known already.
func (f Figures) warnOfSync() []Warning {
	if machine.InMemory(f.Run.Header.Machine) {
		return nil
	}
	var worst *Row
	shortest := syncDoubtful
	for _, g := range f.Groups {
		for i := range g.Rows {
			if d, ok := g.Rows[i].syncTime(); ok && d < shortest {
				worst, shortest = &g.Rows[i], d
			}
		}
	}
	if worst == nil {
		return nil
	}
	w := newWarning("fast-sync",
		fmt.Sprintf("a sync takes %v (median), less than disks need to store anything: perhaps a volatile cache says that bytes are durable and they are not", shortest),
		"find out whether the disk's cache survives a power cut, else switch it off")
	return []Warning{w.of(worst.Cell)}
}

// syncTime returns the time of one sync, if the cell shows it. It is that of a lone
// writer's Write that waits for the disk, or of the sync at Close.
func (r Row) syncTime() (time.Duration, bool) {
	switch r.Cell.Policy.Sync.Mode {
	case holdfast.SyncGroup, holdfast.SyncEach:
		write := r.Latency
		if r.Service != nil {
			write = *r.Service
		}
		return write.P50, r.Cell.Writers == 1 && write.P50 > 0
	case holdfast.SyncClose:
		return time.Duration(r.Stages.Sync), r.Stages.Sync > 0
	}
	return 0, false
}

// warnOfProcess reports what happened to the process that measured.
func (f Figures) warnOfProcess() (found []Warning) {
	if end := f.Run.End; end != nil && end.ClockJump != 0 {
		found = append(found, newWarning("clock-jump",
			fmt.Sprintf("the time of day went %v off the monotonic clock: somebody set it, or the machine slept", end.ClockJump.Round(time.Millisecond)),
			"keep the machine awake, then run it again; if the clock was set no figure suffered"))
	}
	h, resumed := f.Run.Header, f.Run.Resumed
	if len(resumed) == 0 {
		return found
	}
	var differences []string
	for _, r := range resumed {
		for _, d := range machine.Differences(h.Machine, r.Machine) {
			differences = append(differences, fmt.Sprintf("%s: %s, then %s", d.Name, d.A, d.B))
		}
		if r.Program != h.Program {
			differences = append(differences, fmt.Sprintf("program: %s, then %s", h.Program, r.Program))
		}
	}
	often := "once"
	if len(resumed) > 1 {
		often = fmt.Sprintf("%d times", len(resumed))
	}
	what := fmt.Sprintf("the run was taken up again (%s), so its rounds lie apart in time", often)
	if len(differences) > 0 {
		what = fmt.Sprintf("the run was taken up again (%s) and not all was as before (%s)", often, strings.Join(differences, "; "))
	}
	return append(found, newWarning("resumed", what, "run it in one go"))
}
