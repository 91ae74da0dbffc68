package machine

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// busy is a computer on which every count can be read.
func busy() map[string]string {
	const cpu = "sys/devices/system/cpu/"
	return map[string]string{
		"proc/stat": "cpu  10 2 30 400 50 6 7 8 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 5\n",

		"proc/pressure/cpu":    "some avg10=0.03 avg60=0.22 avg300=3.49 total=3000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
		"proc/pressure/io":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=4000\n",
		"proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",

		"proc/loadavg": "1.25 0.37 1.37 1/85 15869\n",
		"proc/meminfo": "MemTotal: 9 kB\nDirty:   384 kB\nWriteback:   0 kB\nWritebackTmp:  7 kB\n",
		"proc/vmstat": "nr_dirty 3\nnr_dirty_threshold 300\nnr_dirty_background_threshold 100\n" +
			"pswpin 1\npswpout 1\n",

		"proc/self/mountinfo":         version2 + "27 1 254:2 / / rw - ext4 /dev/vda2 rw\n",
		"proc/self/cgroup":            "0::/a/b\n",
		"sys/fs/cgroup/cpu.stat":      "usage_usec 7\n",
		"sys/fs/cgroup/a/cpu.stat":    "usage_usec 7\nnr_periods 9\nnr_throttled 2\nthrottled_usec 50\n",
		"sys/fs/cgroup/a/b/cpu.stat":  "usage_usec 7\nnr_periods 9\nnr_throttled 1\nthrottled_usec 5\nnr_bursts 0\n",
		"sys/dev/block/254:2":         "-> ../../devices/v/block/vda/vda2",
		"sys/devices/v/block/vda/x":   "",
		"sys/devices/v/block/vda/dev": "254:0\n",

		"sys/devices/v/block/vda/vda2/partition": "2\n",
		"sys/devices/v/block/vda/stat":           " 1 2 3 4 5 6 70 8 0 90 10 0 0 0 0 11 12\n",

		// One package of two cores, with two threads on the first.
		cpu + "cpu0/thermal_throttle/core_throttle_count":    "1\n",
		cpu + "cpu0/thermal_throttle/package_throttle_count": "10\n",
		cpu + "cpu0/topology/physical_package_id":            "0\n",
		cpu + "cpu0/topology/core_id":                        "0\n",
		cpu + "cpu1/thermal_throttle/core_throttle_count":    "2\n",
		cpu + "cpu1/thermal_throttle/package_throttle_count": "10\n",
		cpu + "cpu1/topology/physical_package_id":            "0\n",
		cpu + "cpu1/topology/core_id":                        "1\n",
		cpu + "cpu2/thermal_throttle/core_throttle_count":    "1\n",
		cpu + "cpu2/thermal_throttle/package_throttle_count": "10\n",
		cpu + "cpu2/topology/physical_package_id":            "0\n",
		cpu + "cpu2/topology/core_id":                        "0\n",

		cpu + "cpufreq/policy0/scaling_cur_freq": "1000000\n",
		cpu + "cpufreq/policy1/scaling_cur_freq": "3000000\n",
	}
}

// reading returns the reading of an Observer on a computer with these files, as JSON.
func reading(t *testing.T, files map[string]string) string {
	t.Helper()
	return asJSON(t, tree(files).observer("/home").Read())
}

func asJSON(t *testing.T, a Activity) string {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReadEverything(t *testing.T) {
	files := busy()
	got := reading(t, files)
	for _, want := range []string{
		`"cpu_busy_ns":550000000`, `"cpu_steal_ns":80000000`,
		`"cpu_pressure_ns":3000000`, `"io_pressure_ns":4000000`, `"memory_pressure_ns":0`,
		`"cgroup_throttles":3`, `"cgroup_throttled_ns":55000`, `"thermal_throttles":13`,
		`"device_read_bytes":1536`, `"device_written_bytes":35840`, `"device_flushes":11`, `"device_busy_ns":90000000`,
		`"load_1min":1.25`, `"cpu_frequency_khz":2000000`, `"dirty_bytes":393216`, `"writeback_bytes":0`,
	} {
		if !strings.Contains(got, want+",") && !strings.Contains(got, want+"}") {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	a := tree(files).observer("/home").Read()
	if a.SwappedIn == nil || *a.SwappedIn != int64(os.Getpagesize()) {
		t.Errorf("swapped in %v, want one page", a.SwappedIn)
	}
}

func TestReadOfVersion1CountsNanoseconds(t *testing.T) {
	got := reading(t, map[string]string{
		"proc/self/mountinfo":                  version1,
		"proc/self/cgroup":                     "3:cpu,cpuacct:/c\n0::/\n",
		"sys/fs/cgroup/cpu,cpuacct/c/cpu.stat": "nr_periods 5\nnr_throttled 4\nthrottled_time 123\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.stat":   "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
	})
	if want := `{"cgroup_throttles":4,"cgroup_throttled_ns":123}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReadWithoutProcKnowsNothing(t *testing.T) {
	if got := reading(t, nil); got != "{}" {
		t.Errorf("got %s, want {}", got)
	}
}

func TestReadIsUnknownWhereAFileIsGone(t *testing.T) {
	files := busy()
	o := tree(files).observer("/home")
	o.host = tree(map[string]string{})
	if got := asJSON(t, o.Read()); got != "{}" {
		t.Errorf("got %s, want {}", got)
	}
}

func TestReadOnAnOldKernelKnowsNoFlushes(t *testing.T) {
	files := busy()
	files["sys/devices/v/block/vda/stat"] = "1 2 3 4 5 6 70 8 0 90 10\n"
	a := tree(files).observer("/home").Read()
	if a.DeviceFlushes != nil || a.DeviceWritten == nil {
		t.Errorf("flushes %v, written %v; want only the second", a.DeviceFlushes, a.DeviceWritten)
	}
}

func TestObserveThisComputer(t *testing.T) {
	o := Observe(t.TempDir())
	before := o.Read()
	after := o.Read().Since(before)
	if text := asJSON(t, after); strings.Contains(text, ":-") {
		t.Errorf("a negative difference: %s", text)
	}
	if (before.CPUBusy == nil) != (after.CPUBusy == nil) {
		t.Errorf("CPU time is known once: %v, %v", before.CPUBusy, after.CPUBusy)
	}
}

func TestSince(t *testing.T) {
	files := busy()
	before := tree(files).observer("/home").Read()
	files["proc/stat"] = "cpu  15 2 30 900 50 6 7 8 9 1\n"
	files["proc/pressure/cpu"] = "some total=1\n" // fell
	files["proc/pressure/io"] = ""                // gone
	files["proc/loadavg"] = "0.50\n"
	files["sys/devices/v/block/vda/stat"] = " 1 2 3 4 5 6 80 8 0 90 10 0 0 0 0 12 12\n"
	got := tree(files).observer("/home").Read().Since(before)
	if got.CPUBusy == nil || *got.CPUBusy != 50*time.Millisecond {
		t.Errorf("busy %v, want 50ms", got.CPUBusy)
	}
	if got.CPUPressure != nil || got.IOPressure != nil {
		t.Errorf("pressure %v, %v: want both unknown", got.CPUPressure, got.IOPressure)
	}
	if got.Load == nil || *got.Load != 0.5 {
		t.Errorf("load %v, want the last", got.Load)
	}
	if *got.DeviceWritten != 5120 || *got.DeviceFlushes != 1 || *got.DeviceRead != 0 {
		t.Errorf("device wrote %d, flushed %d, read %d", *got.DeviceWritten, *got.DeviceFlushes, *got.DeviceRead)
	}
}

// TestSinceCoversEveryCount fails if a count is added and not subtracted: the difference between a
// reading and itself is zero, except for the gauges.
func TestSinceCoversEveryCount(t *testing.T) {
	a := tree(busy()).observer("/home").Read()
	same := a.Since(a)
	var counts map[string]float64
	if err := json.Unmarshal([]byte(asJSON(t, same)), &counts); err != nil {
		t.Fatal(err)
	}
	for _, gauge := range []string{"load_1min", "cpu_frequency_khz", "dirty_bytes", "writeback_bytes"} {
		delete(counts, gauge)
	}
	if len(counts) != 14 {
		t.Errorf("%d counts, want 14: %v", len(counts), counts)
	}
	for key, n := range counts {
		if n != 0 {
			t.Errorf("%s = %v since the same reading", key, n)
		}
	}
}

// TestPlusCoversEveryCount adds a reading to itself: counts are doubled, gauges are not.
func TestPlusCoversEveryCount(t *testing.T) {
	a := tree(busy()).observer("/home").Read()
	var once, twice map[string]float64
	if err := errors.Join(json.Unmarshal([]byte(asJSON(t, a)), &once), json.Unmarshal([]byte(asJSON(t, a.Plus(a))), &twice)); err != nil {
		t.Fatal(err)
	}
	for key, n := range once {
		gauge := slices.Contains([]string{"load_1min", "cpu_frequency_khz", "dirty_bytes", "writeback_bytes"}, key)
		if gauge && twice[key] != n || !gauge && twice[key] != 2*n {
			t.Errorf("%s: %v and again is %v", key, n, twice[key])
		}
	}
	if both := a.Plus(Activity{}); both.CPUBusy != nil {
		t.Errorf("with what is not known it is %v", *both.CPUBusy)
	}
}

func TestParseStat(t *testing.T) {
	check := func(text string, busy, steal time.Duration) {
		t.Helper()
		b, s := parseStat(text)
		if (b == nil) != (busy < 0) || b != nil && *b != busy {
			t.Errorf("parseStat(%q) is busy %v, want %v", text, b, busy)
		}
		if (s == nil) != (steal < 0) || s != nil && *s != steal {
			t.Errorf("parseStat(%q) is stolen %v, want %v", text, s, steal)
		}
	}
	check("cpu 1 0 0 0 0 0 0 0\n", 10*time.Millisecond, 0)
	check("cpu 1 0 0 9 9 0 0 2 9 9\n", 10*time.Millisecond, 20*time.Millisecond)
	check("cpu 1 0 0 0 0 0 0\n", -1, -1)
	check("cpu0 1 0 0 0 0 0 0 0\n", -1, -1)
	check("cpu 1 0 -1 0 0 0 0 0\n", -1, -1)
	check("cpu 922337203685 922337203685 0 0 0 0 0 0\n", -1, -1)
	check("cpu 922337203686 0 0 0 0 0 0 0\n", -1, -1)
	check("", -1, -1)
}

func TestSpread(t *testing.T) {
	check := func(files, n int, want string) {
		t.Helper()
		all := strings.Split("abcdefgh"[:files], "")
		if got := strings.Join(spread(all, n), ""); got != want {
			t.Errorf("spread(%d, %d) = %s, want %s", files, n, got, want)
		}
	}
	check(3, 4, "abc")
	check(4, 4, "abcd")
	check(5, 4, "abcd")
	check(8, 4, "aceg")
}

func TestDirtyLimits(t *testing.T) {
	size := int64(os.Getpagesize())
	got, ok := tree(busy()).dirtyLimits()
	if want := (DirtyLimits{100 * size, 200 * size, 300 * size}); !ok || got != want {
		t.Errorf("got %+v, %v; want %+v", got, ok, want)
	}
	if _, ok := tree(nil).dirtyLimits(); ok {
		t.Error("limits without /proc")
	}
}

// FuzzFiles plants one text as every file that is read: nothing may panic, and
// nothing may be negative.
func FuzzFiles(f *testing.F) {
	for _, text := range busy() {
		f.Add(text)
	}
	f.Add("Filename\n/dev/x partition 7\n")
	f.Add("254:0 wbps=7 riops=max\n7:0 1\n")
	f.Add("9223372036854775807 100000\n")
	f.Add("MemTotal: 9223372036854775807 kB\nDirty: -1 kB\n")
	f.Add("0-1,4-3")
	f.Add("31 23 0:28 / // rw - cgroup2 cgroup2 rw\n27 1 254:2 / / rw - ext4 /dev/vda2 rw\n0::/a/..\n")
	f.Fuzz(func(t *testing.T, text string) {
		plantedEverywhere(t, text, false)
		plantedEverywhere(t, text, true)
	})
}

// plantedEverywhere reads everything from copies of one text, the mounts too or not.
func plantedEverywhere(t *testing.T, text string, mountsToo bool) {
	if strings.HasPrefix(text, "-> ") {
		return // tree would make a link of it
	}
	files := busy()
	for name, old := range files {
		if !strings.HasPrefix(old, "-> ") && (mountsToo || name != "proc/self/mountinfo") {
			files[name] = text
		}
	}
	for _, name := range []string{
		"proc/cpuinfo", "proc/swaps", "sys/devices/system/cpu/online", "sys/fs/cgroup/cpu.max",
		"sys/fs/cgroup/memory.max", "sys/fs/cgroup/io.max", "sys/fs/cgroup/cpuset.cpus.effective",
		"sys/devices/v/block/vda/size", "sys/devices/v/block/vda/dm/uuid", "sys/devices/v/block/vda/queue/scheduler",
		"sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq", "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq",
	} {
		files[name] = text
	}
	h := tree(files)
	if got := reading(t, files); strings.Contains(got, ":-") {
		t.Errorf("negative: %s", got)
	}
	if d, ok := h.dirtyLimits(); ok && (d.Background < 0 || d.Throttle < 0 || d.Limit < 0) {
		t.Errorf("negative: %+v", d)
	}
	facts := everything(h, "/home")
	for _, name := range []string{"memory", "cgroup memory limit", "cgroup CPU limit", "CPUs online", "device size"} {
		if fact := Get(facts, name); strings.HasPrefix(fact.Value, "-") {
			t.Errorf("negative: %+v", fact)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	o := Observe(".")
	for b.Loop() {
		o.Read()
	}
}
