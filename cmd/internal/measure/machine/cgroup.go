package machine

import (
	"fmt"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

// cgroup names the control groups that this process is in: see cgroups(7).
const cgroup = "/proc/self/cgroup"

// unlimited is the text of a limit that is not set.
const unlimited = "no limit"

// noMemoryLimit is the value that version 1 shows for no limit: the largest number of whole pages in an
// int64. Pages are at most 64 KiB.
const noMemoryLimit = math.MaxInt64 - 64<<10

// limit finds the tightest limit in the group of this process and all above it. If it can't
// read a limit, the tightest is unknown.
func (h host) limit(name, controller string) Fact {
	group, ok := h.group(controller)
	if !ok {
		return known(name, "", cgroup, false)
	}
	found, least := known(name, "", group.top, false), math.Inf(1)
	for _, dir := range group.upwards() {
		amount, file, ok := h.groupLimit(dir, group.version, controller)
		if _, exists := h.text(file); exists && !ok {
			return Fact{name, Unknown, file}
		}
		if ok && (found.Value == Unknown || amount < least) {
			least = amount
			found = Fact{name, unlimited, file}
			if !math.IsInf(amount, 1) {
				found.Value = formatBytes(int64(amount))
				if controller == "cpu" {
					found.Value = fmt.Sprintf("%.4g CPUs", amount)
				}
			}
		}
	}
	// The topmost group of version 2 has no limit files, because it has no limits.
	if found.Value == Unknown && group.version == 2 {
		return Fact{name, unlimited, group.dir + " (no limit file)"}
	}
	return found
}

// MemoryLimit returns the bytes of memory that this process's control groups let it have. It
// reports false where there is no limit or it is not known.
func MemoryLimit() (limit int64, ok bool) {
	h := host{files: os.DirFS("/")}
	least := math.Inf(1)
	group, _ := h.group("memory")
	for _, dir := range group.upwards() {
		if amount, _, ok := h.groupLimit(dir, group.version, "memory"); ok {
			least = min(least, amount)
		}
	}
	return int64(least), !math.IsInf(least, 1)
}

// A group is the place of a controller's files for this process.
type group struct {
	version int
	top     string // mount point of the hierarchy
	dir     string // the process's own group, top or below it
}

// group finds the group of this process for a controller. It joins /proc/self/cgroup (which group) with
// the mounts (where). A controller is under version 1 or 2, never both.
func (h host) group(controller string) (group, bool) {
	groups, _ := h.text(cgroup)
	mounts := h.mounts()
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			return place(mounts, 1, controller, fields[2])
		}
	}
	for line := range strings.Lines(groups) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return place(mounts, 2, "", own)
		}
	}
	return group{}, false
}

// upwards returns the directories of the group and of all above it. The limits of all of
// them hold.
func (g group) upwards() []string {
	var dirs []string
	top := path.Clean(g.top) // path.Dir returns only clean ones, and dir must become equal to it
	for dir := g.dir; within(dir, top); dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == top {
			break
		}
	}
	return dirs
}

// place finds the directory of a group below the mount of its hierarchy. In a container only a part
// of the hierarchy is mounted, and the group's name may be its name outside the container. Then the
// mount's top is the group.
func place(mounts []mountinfo.Mount, version int, controller, own string) (group, bool) {
	for _, m := range mounts {
		isOurs := version == 2 && m.Kind == "cgroup2" ||
			version == 1 && m.Kind == "cgroup" && slices.Contains(m.Super, controller)
		if !isOurs {
			continue
		}
		dir := m.Point
		if within(own, m.Root) {
			dir = path.Join(m.Point, strings.TrimPrefix(own, strings.TrimSuffix(m.Root, "/")))
		}
		return group{version, m.Point, dir}, true
	}
	return group{}, false
}

// groupLimit reads one group's limit, in CPUs or bytes; +Inf is none.
func (h host) groupLimit(dir string, version int, controller string) (amount float64, file string, ok bool) {
	switch {
	case version == 2 && controller == "cpu":
		file = path.Join(dir, "cpu.max")
		text, _ := h.text(file)
		quota, period, _ := strings.Cut(text, " ")
		amount, ok = cpuShare(quota, period)
	case version == 2:
		file = path.Join(dir, "memory.max")
		text, _ := h.text(file)
		amount, ok = memoryAmount(text)
	case controller == "cpu":
		file = path.Join(dir, "cpu.cfs_quota_us")
		quota, _ := h.text(file)
		period, _ := h.text(path.Join(dir, "cpu.cfs_period_us"))
		amount, ok = cpuShare(quota, period)
	default:
		file = path.Join(dir, "memory.limit_in_bytes")
		text, _ := h.text(file)
		amount, ok = memoryAmount(text)
	}
	return amount, file, ok
}

// cpuShare returns the CPUs that a quota gives in each period; "max" and -1 are
// no limit.
func cpuShare(quota, period string) (float64, bool) {
	if quota == "max" || quota == "-1" {
		return math.Inf(1), true
	}
	q, err := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	return q / p, err == nil && err2 == nil && q > 0 && p > 0
}

func memoryAmount(text string) (float64, bool) {
	if text == "max" {
		return math.Inf(1), true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if n >= noMemoryLimit {
		return math.Inf(1), err == nil
	}
	return float64(n), err == nil && n >= 0
}
