package uml

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// An unknownModule is in none of the kernel's lists.
type unknownModule struct{ name string }

func (e *unknownModule) Error() string { return "the kernel has no module " + e.name }

// A moduleIndex is depmod(8)'s index of a kernel's modules. Names are the kernel's, with _ for -.
type moduleIndex struct {
	builtin map[string]bool
	files   map[string]string   // name → file in the directory of modules
	needs   map[string][]string // name → files; the last of them is loaded first
	before  map[string][]string // soft dependencies: name → names or aliases
	aliases map[string]string
}

// modules returns the files of these modules and of all that they need, in the order in
// which they are loaded. A module that is built in has no file.
func (k Kernel) modules(names []string) ([]string, error) {
	index, err := readIndex(k.Modules)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, name := range names {
		if files, err = index.add(files, moduleName(name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// add appends a module after what it needs, unless files has it.
func (m moduleIndex) add(files []string, name string) ([]string, error) {
	if m.builtin[name] {
		return files, nil
	}
	file, ok := m.files[name]
	if !ok {
		return nil, &unknownModule{name}
	}
	for _, soft := range m.before[name] {
		if alias, ok := m.aliases[soft]; ok {
			soft = alias
		}
		if _, known := m.files[soft]; known && soft != name {
			files, _ = m.add(files, soft)
		}
	}
	for _, need := range slices.Backward(m.needs[name]) {
		files = appendOnce(files, need)
	}
	return appendOnce(files, file), nil
}

func appendOnce(files []string, file string) []string {
	if slices.Contains(files, file) {
		return files
	}
	return append(files, file)
}

// moduleName turns a file or a name into the name that the kernel uses.
func moduleName(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".ko"), "-", "_")
}

func readIndex(dir string) (moduleIndex, error) {
	m := moduleIndex{map[string]bool{}, map[string]string{}, map[string][]string{}, map[string][]string{}, map[string]string{}}
	read := func(name string, take func(fields []string)) error {
		text, err := os.ReadFile(filepath.Join(dir, name))
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 0 {
				take(fields)
			}
		}
		return err
	}
	// a/x.ko: b/y.ko c/z.ko
	err := read("modules.dep", func(f []string) {
		file := strings.TrimSuffix(f[0], ":")
		m.files[moduleName(file)] = file
		m.needs[moduleName(file)] = f[1:]
	})
	if err != nil {
		return m, fmt.Errorf("the list of the kernel's modules: %w", err)
	}
	// A kernel may lack any of the files below.
	_ = read("modules.builtin", func(f []string) { m.builtin[moduleName(f[0])] = true })
	// softdep x pre: y z post: w
	_ = read("modules.softdep", func(f []string) {
		if f[0] != "softdep" || len(f) < 3 || f[2] != "pre:" {
			return
		}
		for _, name := range f[3:] {
			if strings.HasSuffix(name, ":") {
				return
			}
			m.before[moduleName(f[1])] = append(m.before[moduleName(f[1])], moduleName(name))
		}
	})
	_ = read("modules.alias", func(f []string) {
		if len(f) == 3 && f[0] == "alias" {
			m.aliases[moduleName(f[1])] = f[2]
		}
	})
	return m, nil
}
