package machine

import (
	"fmt"
	"slices"
	"strings"
)

// perCPU joins what the CPUs' frequency scaling says in a file, each value once.
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

// frequencyRange tells between what the governors may choose: the lowest and the
// highest of all CPUs.
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

// boost tells whether the CPUs may run faster than their nominal frequency for
// as long as heat and power allow.
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
