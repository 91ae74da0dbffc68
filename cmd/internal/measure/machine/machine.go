// Package machine describes this computer, as far as it matters for the speed of file writes and for
// the data that survives a crash. Each fact has its source, or is "unknown". The package changes
// nothing, starts no program, and does not guess.
//
// Start with [Read]. An [Observer] reports the computer's activity during a measurement.
package machine

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// Unknown is the Value of a fact that could not be read; its Source says where Read
// looked.
const Unknown = "unknown"

// HostName is the fact that distinguishes the results of several computers. In a container it is the
// container's name.
const HostName = "host name"

// A Fact is one known property of the computer.
type Fact struct {
	Name   string `json:"name"`   // such as "CPU model"
	Value  string `json:"value"`  // with its unit, or Unknown
	Source string `json:"source"` // the file or call that reported it
}

// Get returns the fact of that name; its Value is Unknown if there is none.
func Get(facts []Fact, name string) Fact {
	for _, f := range facts {
		if f.Name == name {
			return f
		}
	}
	return Fact{Name: name, Value: Unknown, Source: "not asked"}
}

// Read returns the facts about this computer and about the file system and the
// device that hold dir. The names and their order are the same on every system
// and for every directory.
func Read(dir string) []Fact {
	host := host{files: os.DirFS("/")}
	name, err := os.Hostname()
	facts := []Fact{
		known(HostName, name, "os.Hostname", err == nil && name != ""),
		{"operating system", runtime.GOOS + "/" + runtime.GOARCH, "runtime.GOOS, runtime.GOARCH"},
		{"Go version", runtime.Version(), "runtime.Version"},
		{"CPUs", fmt.Sprint(runtime.NumCPU()), "runtime.NumCPU (those that this process may use)"},
		{"GOMAXPROCS", fmt.Sprint(runtime.GOMAXPROCS(0)), "runtime.GOMAXPROCS"},
	}
	facts = append(facts, host.processor()...)
	facts = append(facts, host.memory()...)
	facts = append(facts, host.limits()...)
	facts = append(facts, host.kernel()...)
	facts = append(facts, fileSystemFacts(host, dir)...)
	return append(facts, host.dirtySettings()...)
}

// limits returns the limits of this process's control groups.
func (h host) limits() []Fact {
	return []Fact{
		h.limit("cgroup CPU limit", "cpu"),
		h.cpuSet(),
		h.limit("cgroup memory limit", "memory"),
	}
}

// cpuSet returns the CPUs that the group may use, if these are not all that are online.
func (h host) cpuSet() Fact {
	const name = "cgroup CPU set"
	group, ok := h.group("cpuset")
	if !ok {
		return known(name, "", cgroup, false)
	}
	for _, dir := range group.upwards() {
		// The effective set obeys the groups above already.
		for _, file := range []string{"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"} {
			file = path.Join(dir, file)
			list, _ := h.text(file)
			if n, ok := countList(list); ok {
				online, _ := h.text(cpusOnline)
				if all, ok := countList(online); ok && all == n {
					return Fact{name, unlimited, file}
				}
				return Fact{name, fmt.Sprintf("%s (%d CPUs)", list, n), file}
			}
		}
	}
	return known(name, "", group.top, false)
}

// A host is a computer, read from the files below its root. So a test can make one up.
type host struct {
	files fs.FS
}

// text returns a file's text without the white space around it.
func (h host) text(name string) (string, bool) {
	data, err := fs.ReadFile(h.files, strings.TrimPrefix(name, "/"))
	return strings.TrimSpace(string(data)), err == nil
}

// glob returns the files that match an absolute pattern, in order.
func (h host) glob(pattern string) []string {
	// The only error is a bad pattern, and the patterns are ours.
	names, _ := fs.Glob(h.files, strings.TrimPrefix(pattern, "/"))
	return names
}

// fact returns the text of a file as a fact.
func (h host) fact(name, file string) Fact {
	text, ok := h.text(file)
	return known(name, text, file, ok && text != "")
}

// known returns the fact, or the unknown one if it is not ok.
func known(name, value, source string, ok bool) Fact {
	if !ok {
		value = Unknown
	}
	return Fact{Name: name, Value: value, Source: source}
}

// fileSystemFacts finds the mount that holds dir. Without a list of mounts it calls
// statfs.
func fileSystemFacts(h host, dir string) []Fact {
	facts := h.directory(realPath(dir))
	if facts[0].Value == Unknown {
		name, err := sys.FileSystem(dir)
		facts[0] = known(facts[0].Name, name, "statfs", err == nil && name != "")
	}
	journal := "yes"
	if sys.LacksJournal(dir) {
		journal = "none"
	}
	isExt := slices.Contains([]string{"ext2", "ext3", "ext4"}, facts[0].Value) // for other file systems it is unknown
	free, err := sys.FreeSpace(dir)
	return append(facts, known("journal", journal, "statfs, /sys/fs/ext4", isExt), known("free space", formatBytes(free), "statfs", err == nil))
}

// realPath returns a directory's absolute path without links. If it can't, it returns the
// directory unchanged.
func realPath(dir string) string {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return dir
	}
	return path
}

func (h host) kernel() []Fact {
	return []Fact{h.fact("kernel", "/proc/sys/kernel/osrelease")}
}

// dirtySettings returns the settings by which the kernel writes dirty pages back.
func (h host) dirtySettings() []Fact {
	var facts []Fact
	for _, name := range []string{
		"dirty_background_bytes", "dirty_background_ratio", "dirty_bytes",
		"dirty_ratio", "dirty_expire_centisecs", "dirty_writeback_centisecs",
	} {
		facts = append(facts, h.fact("vm."+name, "/proc/sys/vm/"+name))
	}
	return facts
}
