package machine

import (
	"slices"
	"testing"
)

func TestDifferences(t *testing.T) {
	a := []Fact{
		{"CPUs", "2", "x"}, {"memory", "1.0 GiB", "x"}, {"memory available", "5 bytes", "x"}, {"kernel", "6.1", "x"},
		{"file system", "ext4", "x"}, {"device model", Unknown, "x"}, {"FUA", Unknown, "x"}, {"free space", "1 bytes", "x"},
	}
	b := []Fact{
		{"memory", "2.0 GiB", "x"}, {"CPUs", "4", "x"}, {"memory available", "6 bytes", "x"}, {"kernel", "6.1", "another source"},
		{"file system", "xfs", "x"}, {"device model", "Fast Disk", "x"}, {"FUA", Unknown, "x"}, {"free space", "2 bytes", "x"},
		{"new fact", "here", "x"}, {"new unknown fact", Unknown, "x"},
	}
	want := []Difference{
		{"device model", Unknown, "Fast Disk"},
		{"file system", "ext4", "xfs"},
		{"CPUs", "2", "4"},
		{"memory", "1.0 GiB", "2.0 GiB"},
		{"new fact", Unknown, "here"},
	}
	if got := Differences(a, b); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDifferencesOfOneComputerAreNone(t *testing.T) {
	facts := Read(".")
	if got := Differences(facts, facts); len(got) > 0 {
		t.Errorf("got %v, want none", got)
	}
}

// TestNamesInTheOrderExist keeps the lists in step with the facts' names.
func TestNamesInTheOrderExist(t *testing.T) {
	facts := Read(".")
	for _, name := range slices.Concat(weighty, passing) {
		if Get(facts, name).Source == "not asked" {
			t.Errorf("there is no fact %q", name)
		}
	}
}

func TestTraits(t *testing.T) {
	check := func(name, value string, trait func([]Fact) bool, want bool) {
		t.Helper()
		if got := trait([]Fact{{name, value, "x"}}); got != want {
			t.Errorf("%s %q: got %v, want %v", name, value, got, want)
		}
	}
	check("CPU governor", "performance", FrequencyScales, false)
	check("CPU governor", "performance, schedutil", FrequencyScales, true)
	check("CPU governor", Unknown, FrequencyScales, false)
	check("CPU boost", "on", FrequencyScales, true)
	check("CPU boost", "off", FrequencyScales, false)
	check("virtualisation", "none seen", InVirtualMachine, false)
	check("virtualisation", "virtual machine (xen)", InVirtualMachine, true)
	check("file system", "ramfs", InMemory, true)
	check("file system", "ext4", InMemory, false)
	check("overlay upper file system", "tmpfs", InMemory, true)
}
