package machine

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	cpuinfo    = "/proc/cpuinfo"
	cpusOnline = "/sys/devices/system/cpu/online"
)

func (h host) processor() []Fact {
	text, _ := h.text(cpuinfo)
	list, _ := h.text(cpusOnline)
	online, ok := countList(list) // this process may be allowed fewer CPUs
	return []Fact{
		h.processorModel(text),
		known("CPUs online", strconv.Itoa(online), cpusOnline, ok),
		h.perCPU("CPU governor", "scaling_governor"),
		h.perCPU("CPU frequency driver", "scaling_driver"),
		h.frequencyRange(),
		h.boost(),
		h.virtualisation(text),
	}
}

// processorModel reads x86's "model name"; ARM gives numbers only.
func (h host) processorModel(text string) Fact {
	if model := colonField(text, "model name"); model != "" {
		return Fact{"CPU model", model, cpuinfo}
	}
	implementer, part := colonField(text, "CPU implementer"), colonField(text, "CPU part")
	return known("CPU model", fmt.Sprintf("implementer %s, part %s", implementer, part), cpuinfo,
		implementer != "" && part != "")
}

// colonField returns the value of the first line "key : value".
func colonField(text, key string) string {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// countList counts the numbers in a list such as "0-3,8".
func countList(list string) (n int, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err != nil || err2 != nil || last < first {
			return 0, false
		}
		n += int(last-first) + 1
	}
	return n, true
}

// virtualisation recognizes a virtual machine by the CPU's hypervisor flag, and its maker by
// DMI. ARM has no such flag: there only the maker tells. Without the flag only x86 is known to be a
// real machine.
func (h host) virtualisation(text string) Fact {
	const name, dmi = "virtualisation", "/sys/class/dmi/id"
	flags := colonField(text, "flags")
	vendor, _ := h.text(path.Join(dmi, "sys_vendor"))
	product, _ := h.text(path.Join(dmi, "product_name"))
	maker := strings.TrimSpace(vendor + " " + product)
	if slices.Contains(strings.Fields(flags), "hypervisor") {
		value := "virtual machine"
		if maker != "" {
			value += " (" + maker + ")"
		}
		return Fact{name, value, cpuinfo + " (hypervisor flag), " + dmi}
	}
	if kind, ok := h.text("/sys/hypervisor/type"); ok && kind != "" {
		return Fact{name, "virtual machine (" + kind + ")", "/sys/hypervisor/type"}
	}
	if flags == "" && slices.ContainsFunc([]string{"QEMU", "KVM", "Virtual Machine", "VMware"}, func(word string) bool {
		return strings.Contains(maker, word)
	}) {
		return Fact{name, "virtual machine (" + maker + ")", dmi}
	}
	return known(name, "none seen", cpuinfo+" (no hypervisor flag)", flags != "")
}

// perCPU joins the values of a file of the CPUs' frequency scaling, each once.
func (h host) perCPU(name, file string) Fact {
	pattern := "/sys/devices/system/cpu/cpu*/cpufreq/" + file
	var values []string
	for _, file := range h.glob(pattern) {
		if value, ok := h.text(file); ok && value != "" {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	return known(name, strings.Join(values, ", "), pattern, len(values) > 0)
}

// frequencyRange returns the lowest and the highest frequency of all CPUs that a governor
// may choose.
func (h host) frequencyRange() Fact {
	const pattern = "/sys/devices/system/cpu/cpufreq/policy*/scaling_{min,max}_freq"
	low := h.frequencies("scaling_min_freq")
	high := h.frequencies("scaling_max_freq")
	if len(low) == 0 || len(high) == 0 {
		return known("CPU frequency range", "", pattern, false)
	}
	value := formatFrequency(slices.Min(low)) + " to " + formatFrequency(slices.Max(high))
	return Fact{"CPU frequency range", value, pattern}
}

// frequencies reads a file of every frequency policy, in kHz.
func (h host) frequencies(file string) []int64 {
	var all []int64
	for _, file := range h.glob("/sys/devices/system/cpu/cpufreq/policy*/" + file) {
		if n, ok := h.count(file); ok {
			all = append(all, n)
		}
	}
	return all
}

func formatFrequency(kHz int64) string {
	return fmt.Sprintf("%.4g GHz", float64(kHz)/1e6)
}

// boost says whether the CPUs may run faster than their nominal frequency, as long as
// heat and power allow.
func (h host) boost() Fact {
	const intel, other = "/sys/devices/system/cpu/intel_pstate/no_turbo", "/sys/devices/system/cpu/cpufreq/boost"
	text, _ := h.text(intel)
	if value, ok := map[string]string{"0": "on", "1": "off"}[text]; ok {
		return Fact{"CPU boost", value, intel}
	}
	text, _ = h.text(other)
	value, ok := map[string]string{"0": "off", "1": "on"}[text]
	return known("CPU boost", value, other, ok)
}
