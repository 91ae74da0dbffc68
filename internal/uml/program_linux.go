package uml

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// self is the file that runs, also if it was replaced or removed meanwhile.
const self = "/proc/self/exe"

// thisProgram lists what the program needs to run elsewhere: itself, as the init, and
// if it is linked dynamically the interpreter that it names and the shared libraries
// that are mapped now.
func thisProgram() ([]packed, error) {
	files := []packed{{path: initPath, mode: 0o755, from: self}}
	f, err := elf.Open(self)
	if err != nil {
		return nil, fmt.Errorf("reading this program: %w", err)
	}
	defer f.Close()
	interpreter, err := interpreterOf(f)
	if err != nil || interpreter == "" {
		return files, err
	}
	files = append(files, packed{path: interpreter, mode: 0o755, from: interpreter})
	mapped, err := mappedFiles()
	for _, from := range mapped {
		if name := libraryName(from); name != "" {
			files = append(files, packed{path: path.Join(libraryPath, name), mode: 0o755, from: from})
		}
	}
	return slices.CompactFunc(files, func(a, b packed) bool { return a.path == b.path }), err
}

func interpreterOf(f *elf.File) (string, error) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text := make([]byte, p.Filesz)
			if _, err := p.ReadAt(text, 0); err != nil {
				return "", fmt.Errorf("reading this program: %w", err)
			}
			return strings.TrimRight(string(text), "\x00"), nil
		}
	}
	return "", nil
}

// mappedFiles are the files whose code is mapped into this process, each once.
func mappedFiles() ([]string, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var files []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// address, rights, offset, device, inode, name: proc_pid_maps(5).
		fields := strings.SplitN(strings.Join(strings.Fields(lines.Text()), " "), " ", 6)
		if len(fields) == 6 && strings.Contains(fields[1], "x") && strings.HasPrefix(fields[5], "/") {
			files = appendOnce(files, fields[5])
		}
	}
	return files, lines.Err()
}

// libraryName is the name by which the interpreter looks for a shared library, or
// empty for a file that is none.
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
