package write

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A target is the path of the files that lines go to. With a place for a value, {} in the last name, each value
// has a file of its own, and no value leaves the directory.
type target struct {
	before, after string // the place
	varies        bool
}

func (t target) String() string {
	if t.varies {
		return t.before + "{}" + t.after
	}
	return t.before
}

// parseTarget reads the value of --out. It refuses what can't be a file's path.
func parseTarget(path string) (t target, err error) {
	dir, name := filepath.Split(path)
	t.before, t.after, t.varies = strings.Cut(name, "{}")
	switch {
	case path == "":
		err = errors.New("a name is missing; use for instance logs/app.log")
	case path == "-":
		err = errors.New("- is not a file; use ./- for a file named -")
	case name == "", name == ".", name == "..":
		err = errors.New("it names a directory; end it with a file's name")
	case strings.IndexByte(path, 0) >= 0:
		err = errors.New("a name can't hold a NUL byte; leave it out")
	case strings.Contains(dir, "{}") || strings.ContainsAny(t.before+t.after, "{}"):
		err = errors.New("use {} once, in the file's name, for the value of the column; other braces are not allowed")
	}
	if err != nil {
		return target{}, fmt.Errorf("%q: %w", path, err)
	}
	t.before = dir + t.before
	return t, nil
}

// path returns the file of a value.
func (t target) path(value []byte) string {
	if !t.varies {
		return t.before
	}
	return t.before + fileName(value, runtime.GOOS == "windows") + t.after
}

// fileName makes a value stand in a file's name. A byte that can't, or would mean something there, is written
// as in a URL: % and two hexadecimal digits for each byte. These are slashes, backslashes, percent signs,
// control characters, bytes that are no text, and a leading dot. The empty value is %-. Two values never have
// one name.
func fileName(value []byte, windows bool) string {
	if len(value) == 0 {
		return "%-"
	}
	unsafe, last, device := `/\%`, len(value), false
	if windows { // it keeps more characters and the names of devices for itself, and drops a dot or space at the end
		unsafe, last, device = `/\%:*?"<>|`, len(strings.TrimRight(string(value), ". ")), isDevice(string(value))
	}
	var name strings.Builder
	for i := 0; i < len(value); {
		c, size := utf8.DecodeRune(value[i:])
		if i == 0 && (c == '.' || device) || i >= last || c == utf8.RuneError && size == 1 || unicode.IsControl(c) || strings.ContainsRune(unsafe, c) {
			for _, b := range value[i : i+size] {
				fmt.Fprintf(&name, "%%%02X", b)
			}
		} else {
			name.Write(value[i : i+size])
		}
		i += size
	}
	return name.String()
}

// isDevice reports whether Windows takes the name for a device's, whatever ending it has.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	port := strings.TrimPrefix(strings.TrimPrefix(stem, "COM"), "LPT")
	return len(stem) == 4 && len(port) == 1 && '0' <= port[0] && port[0] <= '9'
}
