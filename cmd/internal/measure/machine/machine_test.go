package machine

import (
	"encoding/json"
	"os"
	"runtime"
	"testing"
	"testing/fstest"
)

// tree makes a host out of files and links (a value that starts with "-> ").
func tree(files map[string]string) host {
	m := fstest.MapFS{}
	for name, text := range files {
		if len(text) > 3 && text[:3] == "-> " {
			m[name] = &fstest.MapFile{Data: []byte(text[3:]), Mode: os.ModeSymlink | 0o777}
			continue
		}
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return host{files: m}
}

func checker(t *testing.T, facts []Fact) func(name, want string) {
	return func(name, want string) {
		t.Helper()
		if got := Get(facts, name); got.Value != want {
			t.Errorf("%s = %q (%s), want %q", name, got.Value, got.Source, want)
		}
	}
}

func TestReadKnowsWhatTheRuntimeKnows(t *testing.T) {
	facts := Read(t.TempDir())
	check := checker(t, facts)
	check("operating system", runtime.GOOS+"/"+runtime.GOARCH)
	check("Go version", runtime.Version())
	seen := map[string]bool{}
	for _, f := range facts {
		if f.Name == "" || f.Value == "" || f.Source == "" {
			t.Errorf("fact with a gap: %+v", f)
		}
		if seen[f.Name] {
			t.Errorf("fact %q is given twice", f.Name)
		}
		seen[f.Name] = true
	}
}

func TestFactsAreTheSameForEveryDirectory(t *testing.T) {
	names := func(dir string) (all []string) {
		for _, f := range Read(dir) {
			all = append(all, f.Name)
		}
		return all
	}
	here, nowhere := names("."), names("/no/such/directory")
	if len(here) != len(nowhere) {
		t.Fatalf("%d facts here, %d for no directory", len(here), len(nowhere))
	}
	for i := range here {
		if here[i] != nowhere[i] {
			t.Errorf("fact %d is %q here, %q for no directory", i, here[i], nowhere[i])
		}
	}
}

func TestWithoutProcEverythingIsUnknown(t *testing.T) {
	facts := everything(tree(nil), "/data")
	for _, f := range facts {
		if f.Value != Unknown || f.Source == "" {
			t.Errorf("%+v: want unknown, and what was asked", f)
		}
	}
}

func TestFactAsJSON(t *testing.T) {
	got, err := json.Marshal(Fact{"CPUs", "2", "runtime.NumCPU"})
	if want := `{"name":"CPUs","value":"2","source":"runtime.NumCPU"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestProcessor(t *testing.T) {
	h := tree(map[string]string{
		"proc/cpuinfo":                                         "processor\t: 0\nmodel name\t: Example CPU 3000\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\n",
		"sys/class/dmi/id/sys_vendor":                          "QEMU\n",
		"sys/class/dmi/id/product_name":                        "Standard PC\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "schedutil\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "schedutil\n",
		"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": "performance\n",
	})
	check := checker(t, h.processor())
	check("CPU model", "Example CPU 3000")
	check("CPU governor", "performance, schedutil")
	check("virtualisation", "virtual machine (QEMU Standard PC)")
}

func TestProcessorOfARealComputer(t *testing.T) {
	check := checker(t, tree(map[string]string{"proc/cpuinfo": "model name : X\nflags : fpu sse\n"}).processor())
	check("virtualisation", "none seen")
	check("CPU governor", Unknown)
}

func TestProcessorOnARM(t *testing.T) {
	h := tree(map[string]string{"proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"})
	check := checker(t, h.processor())
	check("CPU model", "implementer 0x41, part 0xd0c")
	check("virtualisation", Unknown)
}

func TestMemory(t *testing.T) {
	h := tree(map[string]string{"proc/meminfo": "MemTotal:       16316236 kB\nMemFree: 1 kB\nMemAvailable:    512 kB\n"})
	check := checker(t, h.memory())
	check("memory", "15.6 GiB")
	check("memory available", "512.0 KiB")
}

func TestFormatBytes(t *testing.T) {
	check := func(n int64, want string) {
		t.Helper()
		if got := formatBytes(n); got != want {
			t.Errorf("formatBytes(%d) = %q, want %q", n, got, want)
		}
	}
	check(0, "0 bytes")
	check(1023, "1023 bytes")
	check(1024, "1.0 KiB")
	check(5<<40, "5.0 TiB")
	check(5<<50, "5120.0 TiB")
}
