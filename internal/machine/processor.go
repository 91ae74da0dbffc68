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
	return []Fact{
		h.processorModel(text),
		h.online(),
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

// online counts the computer's CPUs that are on; this process may be allowed fewer.
func (h host) online() Fact {
	list, _ := h.text(cpusOnline)
	n, ok := countList(list)
	return known("CPUs online", strconv.Itoa(n), cpusOnline, ok)
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

// virtualisation tells a virtual machine by the CPU's hypervisor flag, and its
// maker by DMI. ARM has no such flag: there the maker alone can tell. Without the
// flag only x86 is known to be real.
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
	if flags == "" && slices.ContainsFunc([]string{"QEMU", "KVM", "Virtual Machine", "VMware"}, func(word string) bool {
		return strings.Contains(maker, word)
	}) {
		return Fact{name, "virtual machine (" + maker + ")", dmi}
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
