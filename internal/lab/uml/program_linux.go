package uml

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// self is the file that runs, even if it was replaced or removed meanwhile.
const self = "/proc/self/exe"

// thisProgram lists what the program needs to run elsewhere. First is itself, as the
// init. If it is linked dynamically, the interpreter that it names follows, with the
// shared libraries that are mapped now.
func thisProgram() ([]packed, error) {
	files := []packed{{path: initPath, mode: 0o755, from: self}}
	f, err := elf.Open(self)
	if err != nil {
		return nil, fmt.Errorf("reading this program: %w", err)
	}
	defer f.Close()
	at := slices.IndexFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if at < 0 {
		return files, nil
	}
	text := make([]byte, f.Progs[at].Filesz)
	if _, err := f.Progs[at].ReadAt(text, 0); err != nil {
		return files, fmt.Errorf("reading this program: %w", err)
	}
	interpreter := strings.TrimRight(string(text), "\x00")
	files = append(files, packed{path: interpreter, mode: 0o755, from: interpreter})
	maps, err := os.ReadFile("/proc/self/maps")
	var mapped []string
	for line := range strings.Lines(string(maps)) {
		// address, rights, offset, device, inode, name: proc_pid_maps(5).
		fields := strings.SplitN(strings.Join(strings.Fields(line), " "), " ", 6)
		if len(fields) == 6 && strings.Contains(fields[1], "x") && strings.HasPrefix(fields[5], "/") {
			mapped = appendOnce(mapped, fields[5])
		}
	}
	for _, from := range mapped {
		if name := libraryName(from); name != "" {
			files = append(files, packed{path: path.Join(libraryPath, name), mode: 0o755, from: from})
		}
	}
	return slices.CompactFunc(files, func(a, b packed) bool { return a.path == b.path }), err
}

// libraryName returns the name by which the interpreter looks for a shared library, or
// nothing if the file is none.
func libraryName(file string) string {
	f, err := elf.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	names, err := f.DynString(elf.DT_SONAME)
	if errors.Is(err, elf.ErrNoSymbols) || len(names) == 0 {
		return ""
	}
	return names[0]
}
