package machine

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// An Observer reads the computer's activity. It looks up the files once, so that readings before and
// after every trial are cheap. It may be used concurrently.
type Observer struct {
	host        host
	groups      []string // cpu.stat of this process's control group and of those above it
	thermal     []string // counts of thermal throttling, of every core and package once
	frequencies []string // at most maxFrequencies
	device      string   // the stat file of the disk; empty if there is none
}

// maxFrequencies bounds the number of CPUs whose frequency is read: on x86, kernels before 5.18
// interrupt a CPU to read it. If the last reading is more than a second old, the reading thread sleeps
// for 10 ms.
const maxFrequencies = 4

// Observe returns an Observer of this computer and of the disk that holds dir.
// A file that it can't find now is unknown in every reading.
func Observe(dir string) *Observer {
	return host{files: os.DirFS("/")}.observer(realPath(dir))
}

func (h host) observer(dir string) *Observer {
	o := &Observer{
		host:        h,
		thermal:     h.thermalFiles(),
		frequencies: spread(h.glob("/sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq"), maxFrequencies),
	}
	if group, ok := h.group("cpu"); ok {
		for _, directory := range group.upwards() {
			o.groups = append(o.groups, path.Join(directory, "cpu.stat"))
		}
	}
	mounts := h.mounts()
	m, _ := findMount(mounts, dir)
	if _, upper, ok := h.upper(mounts, m); ok {
		m = upper
	}
	if disk, ok := h.disk(m); ok {
		o.device = path.Join(disk, "stat")
	}
	return o
}

// thermalFiles finds the throttle counts. Every CPU counts for its core and its package, so the first
// CPU of each is enough.
func (h host) thermalFiles() []string {
	var files []string
	seen := map[string]bool{}
	for _, kind := range []string{"core", "package"} {
		for _, file := range h.glob("/sys/devices/system/cpu/cpu*/thermal_throttle/" + kind + "_throttle_count") {
			cpu := path.Dir(path.Dir(file))
			pack, ok := h.text(path.Join(cpu, "topology/physical_package_id"))
			core, ok2 := h.text(path.Join(cpu, "topology/core_id"))
			die, _ := h.text(path.Join(cpu, "topology/die_id")) // a core's number is unique only within its die
			owner := kind + " of " + cpu                        // if the core or package is not known
			switch {
			case kind == "package" && ok:
				owner = kind + " " + pack
			case kind == "core" && ok && ok2:
				owner = kind + " " + pack + " " + die + " " + core
			}
			if !seen[owner] {
				seen[owner] = true
				files = append(files, file)
			}
		}
	}
	return files
}

// spread returns at most n of some files, evenly over all.
func spread(files []string, n int) []string {
	if len(files) <= n {
		return files
	}
	chosen := make([]string, n)
	for i := range chosen {
		chosen[i] = files[i*len(files)/n]
	}
	return chosen
}

// Read reads the counts and gauges from some dozen small files of /proc and /sys. It never
// fails: what it can't read is unknown.
func (o *Observer) Read() Activity {
	var a Activity
	h := o.host
	stat, _ := h.text("/proc/stat")
	a.CPUBusy, a.CPUSteal = parseStat(stat)
	a.CPUPressure = h.pressure("cpu")
	a.IOPressure = h.pressure("io")
	a.MemoryPressure = h.pressure("memory")
	a.Throttles, a.Throttled = o.throttled()
	a.ThermalThrottles = h.total(o.thermal)
	vmstat, _ := h.text("/proc/vmstat")
	a.SwappedIn, a.SwappedOut = pages(vmstat, "pswpin"), pages(vmstat, "pswpout")
	if o.device != "" {
		text, _ := h.text(o.device)
		a.DeviceRead, a.DeviceWritten, a.DeviceFlushes, a.DeviceBusy = parseDevice(text)
	}
	load, _ := h.text("/proc/loadavg")
	a.Load = parseLoad(load)
	if sum := h.total(o.frequencies); sum != nil {
		mean := *sum / int64(len(o.frequencies))
		a.Frequency = &mean
	}
	meminfo, _ := h.text("/proc/meminfo")
	a.Dirty, a.Writeback = memorySize(meminfo, "Dirty"), memorySize(meminfo, "Writeback")
	return a
}

// tick is the unit of /proc/stat. It is 1/sysconf(_SC_CLK_TCK) s, see proc_stat(5). USER_HZ is 100
// on every system that Go runs on (include/uapi/asm-generic/param.h; only alpha and ia64 have
// another).
const tick = int64(10 * time.Millisecond)

// parseStat adds up the CPU time that was not idle, from the first line of /proc/stat. That is "cpu
// user nice system idle iowait irq softirq steal guest guest_nice". The time of guests is in user
// and nice already.
func parseStat(text string) (busy, steal *time.Duration) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return nil, nil
	}
	var sum int64
	for _, i := range []int{1, 2, 3, 6, 7} {
		n, ok := scaled(fields[i], tick)
		if sum += n; !ok || sum < 0 {
			return nil, nil
		}
	}
	return duration(sum, true), duration(scaled(fields[8], tick))
}

// pressure reads the time for which some task has waited, in µs, from a line such as "some avg10=0.00
// avg60=0.00 avg300=0.00 total=12".
func (h host) pressure(what string) *time.Duration {
	text, _ := h.text("/proc/pressure/" + what)
	_, total, _ := strings.Cut(wordField(text, "some"), "total=")
	return duration(scaled(total, int64(time.Microsecond)))
}

// throttled adds up the throttling of the groups, each by its own quota. A group
// without a quota, or the topmost, has no counts.
func (o *Observer) throttled() (*int64, *time.Duration) {
	var times, long int64
	known := false
	for _, file := range o.groups {
		text, _ := o.host.text(file)
		n, ok := scaled(wordField(text, "nr_throttled"), 1)
		d, ok2 := scaled(wordField(text, "throttled_usec"), int64(time.Microsecond)) // version 2
		if !ok2 {
			d, ok2 = scaled(wordField(text, "throttled_time"), 1) // version 1 counts ns
		}
		if !ok || !ok2 {
			continue
		}
		if times, long = times+n, long+d; times < 0 || long < 0 {
			return nil, nil
		}
		known = true
	}
	return amount(times, known), duration(long, known)
}

// total sums files of one number each. It is nil unless it can read all of them.
func (h host) total(files []string) *int64 {
	var sum int64
	for _, file := range files {
		n, ok := h.count(file)
		if sum += n; !ok || sum < 0 {
			return nil
		}
	}
	return amount(sum, len(files) > 0)
}

// pages reads a line of /proc/vmstat that counts pages.
func pages(vmstat, key string) *int64 {
	return amount(scaled(wordField(vmstat, key), int64(os.Getpagesize())))
}

// parseDevice reads /sys/block/…/stat: see Documentation/block/stat.rst of the
// kernel. Kernels before 5.5 do not count flushes.
func parseDevice(text string) (read, written, flushes *int64, busy *time.Duration) {
	fields := strings.Fields(text)
	if len(fields) < 11 {
		return nil, nil, nil, nil
	}
	if len(fields) > 15 {
		flushes = amount(scaled(fields[15], 1))
	}
	return amount(scaled(fields[2], sector)), amount(scaled(fields[6], sector)), flushes,
		duration(scaled(fields[9], int64(time.Millisecond)))
}

// parseLoad reads the first figure of /proc/loadavg.
func parseLoad(text string) *float64 {
	first, _, _ := strings.Cut(text, " ")
	load, err := strconv.ParseFloat(first, 64)
	// JSON can't hold infinity or NaN.
	if err != nil || math.Signbit(load) || math.IsInf(load, 0) || math.IsNaN(load) {
		return nil
	}
	return &load
}

func memorySize(meminfo, key string) *int64 {
	return amount(kilobytes(colonField(meminfo, key)))
}

func amount(n int64, ok bool) *int64 {
	if !ok {
		return nil
	}
	return &n
}

func duration(n int64, ok bool) *time.Duration {
	if !ok {
		return nil
	}
	d := time.Duration(n)
	return &d
}
