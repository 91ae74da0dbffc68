package machine

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// throttles lists the limits that control groups can set on a device: the key in version 2's io.max,
// and version 1's file.
var throttles = []struct{ key, file string }{
	{"rbps", "blkio.throttle.read_bps_device"},
	{"wbps", "blkio.throttle.write_bps_device"},
	{"riops", "blkio.throttle.read_iops_device"},
	{"wiops", "blkio.throttle.write_iops_device"},
}

// ioLimit finds the tightest limits on any of some devices (major:minor) in the
// group of this process and all above it.
func (h host) ioLimit(devices []string) Fact {
	const name = "cgroup I/O limit"
	group, ok := h.group("blkio")
	if !ok || len(devices) == 0 {
		return known(name, "", cgroup, false)
	}
	fact := Fact{name, Unknown, group.top}
	if group.version == 2 {
		// The topmost group has no io.max, because it has no limits.
		fact = Fact{name, unlimited, group.dir + " (no io.max)"}
	}
	least := map[string]int64{}
	for _, dir := range group.upwards() {
		file, text, exists := h.groupIOLimits(dir, group.version)
		if !exists {
			continue
		}
		before := len(least)
		tighter, ok := tighten(least, text, devices)
		if !ok {
			return Fact{name, Unknown, file}
		}
		if tighter || before == 0 {
			fact.Source = file
		}
		fact.Value = formatIOLimits(least)
	}
	return fact
}

// groupIOLimits reads one group's limits, in the form of io.max.
func (h host) groupIOLimits(dir string, version int) (file, text string, exists bool) {
	if version == 2 {
		file = path.Join(dir, "io.max")
		text, exists = h.text(file)
		return file, text, exists
	}
	var all strings.Builder
	for _, t := range throttles {
		text, ok := h.text(path.Join(dir, t.file))
		exists = exists || ok
		for line := range strings.Lines(text) {
			device, limit, _ := strings.Cut(strings.TrimSpace(line), " ")
			fmt.Fprintf(&all, "%s %s=%s\n", device, t.key, limit)
		}
	}
	return path.Join(dir, "blkio.throttle.*"), all.String(), exists
}

// tighten lowers the least limits by the lines of some devices, such as "8:16 rbps=2097152
// wbps=max riops=max wiops=120". "max" is no limit. It reports whether it lowered any, and
// whether it could read all.
func tighten(least map[string]int64, text string, devices []string) (tighter, ok bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !slices.Contains(devices, fields[0]) {
			continue
		}
		for _, field := range fields[1:] {
			key, value, _ := strings.Cut(field, "=")
			n, ok := scaled(value, 1)
			if !ok && value != "max" {
				return tighter, false
			}
			if old, has := least[key]; ok && (!has || n < old) {
				least[key] = n
				tighter = true
			}
		}
	}
	return tighter, true
}

func formatIOLimits(limits map[string]int64) string {
	var parts []string
	for _, t := range throttles {
		n, ok := limits[t.key]
		switch {
		case !ok:
		case strings.HasSuffix(t.key, "bps"):
			parts = append(parts, fmt.Sprintf("%s=%s/s", t.key, formatBytes(n)))
		default:
			parts = append(parts, fmt.Sprintf("%s=%d/s", t.key, n))
		}
	}
	if len(parts) == 0 {
		return unlimited
	}
	return strings.Join(parts, ", ")
}
