// Package machine says what this computer is, as far as it bears on how fast
// files are written and what survives a crash: each fact with how it was learnt,
// or "unknown". It changes nothing, starts no program, and does not guess.
//
// Start with [Read]; an [Observer] tells what happens while something is measured.
package machine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// Unknown is the Value of a fact that could not be learnt; its Source says what
// was asked.
const Unknown = "unknown"

// A Fact is one thing that is known of the computer.
type Fact struct {
	Name   string `json:"name"`   // such as "CPU model"
	Value  string `json:"value"`  // with its unit, or Unknown
	Source string `json:"source"` // the file or call that told it
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
// and for every folder.
func Read(dir string) []Fact {
	host := host{files: os.DirFS("/")}
	facts := runtimeFacts()
	facts = append(facts, host.processor()...)
	facts = append(facts, host.memory()...)
	facts = append(facts, host.limits()...)
	facts = append(facts, host.kernel()...)
	facts = append(facts, fileSystemFacts(host, dir)...)
	return append(facts, host.dirtySettings()...)
}

// A host is read through the files below its root, so that a test can make one.
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

func runtimeFacts() []Fact {
	return []Fact{
		{"operating system", runtime.GOOS + "/" + runtime.GOARCH, "runtime.GOOS, runtime.GOARCH"},
		{"Go version", runtime.Version(), "runtime.Version"},
		{"CPUs", fmt.Sprint(runtime.NumCPU()), "runtime.NumCPU (those that this process may use)"},
		{"GOMAXPROCS", fmt.Sprint(runtime.GOMAXPROCS(0)), "runtime.GOMAXPROCS"},
	}
}

// fileSystemFacts finds the mount that holds dir, and asks the system itself
// where there is no list of mounts.
func fileSystemFacts(h host, dir string) []Fact {
	facts := h.folder(realPath(dir))
	if facts[0].Value == Unknown {
		name, err := sys.FileSystem(dir)
		facts[0] = known(facts[0].Name, name, "statfs", err == nil && name != "")
	}
	free, err := sys.FreeSpace(dir)
	return append(facts, known("free space", formatBytes(free), "statfs", err == nil))
}

// realPath returns a folder's absolute path without links, or the folder as it
// was given if that can't be found.
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
