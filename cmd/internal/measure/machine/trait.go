package machine

import (
	"slices"
	"strings"
)

// InVirtualMachine reports whether the facts show that the computer is virtual.
func InVirtualMachine(facts []Fact) bool {
	return strings.HasPrefix(Get(facts, "virtualisation").Value, "virtual machine")
}

// ThinOrStacked reports whether the directory's device is known to be more than a disk, such as a
// loop, mapped or thin device. It returns the device's stack.
func ThinOrStacked(facts []Fact) (what string, ok bool) {
	what = Get(facts, "device stack").Value
	return what, strings.Contains(what, " ")
}

// FrequencyScales reports whether the CPUs are known to change their frequency:
// by a governor other than performance, or by boost.
func FrequencyScales(facts []Fact) bool {
	governor := Get(facts, "CPU governor").Value
	return governor != Unknown && governor != "performance" || Get(facts, "CPU boost").Value == "on"
}

// InMemory reports whether the directory is known to be in memory: no sync there
// reaches a disk.
func InMemory(facts []Fact) bool {
	stack := Get(facts, "device stack").Value
	memory := []string{"tmpfs", "ramfs", "devtmpfs"}
	return slices.Contains(memory, Get(facts, "file system").Value) ||
		slices.Contains(memory, Get(facts, "overlay upper file system").Value) ||
		strings.Contains(stack, "("+inMemory+")") || strings.Contains(stack, " on tmpfs)")
}
