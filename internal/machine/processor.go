package machine

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const cpuinfo = "/proc/cpuinfo"

func (h host) processor() []Fact {
	text, _ := h.text(cpuinfo)
	return []Fact{h.processorModel(text), h.governor(), h.virtualisation(text)}
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

// governor names the CPUs' frequency governors, each once.
func (h host) governor() Fact {
	const pattern = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
	var names []string
	for _, file := range h.glob(pattern) {
		if name, ok := h.text(file); ok && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return known("CPU governor", strings.Join(names, ", "), pattern, len(names) > 0)
}

// virtualisation tells a virtual machine by the CPU's hypervisor flag, and its
// maker by DMI. Without the flag only x86 is known to be real.
func (h host) virtualisation(text string) Fact {
	const name, dmi = "virtualisation", "/sys/class/dmi/id"
	flags := colonField(text, "flags")
	maker := h.firmware(dmi)
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
	return known(name, "none seen", cpuinfo+" (no hypervisor flag)", flags != "")
}

// firmware returns the maker's and the product's name, as far as they are given.
func (h host) firmware(dmi string) string {
	var names []string
	for _, file := range []string{"sys_vendor", "product_name"} {
		if name, ok := h.text(path.Join(dmi, file)); ok && name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
