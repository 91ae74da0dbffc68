// Package mountinfo reads the list of mounts that Linux keeps for every process,
// /proc/pid/mountinfo: see proc_pid_mountinfo(5), and fs/proc_namespace.c of the kernel, which
// writes it. Two fields are separated by one space; any other white space is part of a name.
package mountinfo

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Path is the list of the mounts of this process.
const Path = "/proc/self/mountinfo"

// A Mount is one line of the list, with its escapes undone.
type Mount struct {
	ID       int      // a descriptor's fdinfo has it as mnt_id
	Parent   int      // the ID of the mount below this one; it may be missing in the list
	Device   string   // major:minor of the file system, as in stat(2)
	Root     string   // the mounted directory of the file system; "/" unless it is a bind mount
	Point    string   // the mount point, as seen from this process's root
	Options  []string // the mount's options
	Optional []string // propagation of mounts, such as shared:12 and master:7: mount_namespaces(7)
	Kind     string   // file system type, with its subtype: fuse.sshfs
	Source   string   // such as /dev/sda1; the argument of mount(2), which may be empty
	Super    []string // the file system's options, split before unescaping: a comma in one is its own
}

// Read reads the mounts, in the order of the list: of two mounts on one point, the later one hides
// the earlier. After an error it returns the mounts that it could read. It may be called
// concurrently, and blocks only on memory and the kernel's list. Systems other than Linux have no
// list.
func Read() ([]Mount, error) {
	text, err := os.ReadFile(Path)
	if err != nil {
		return nil, fmt.Errorf("what is mounted is not known: %w", err)
	}
	all, err := ParseAll(string(text))
	if err != nil {
		err = fmt.Errorf("what is mounted is not known: %w", err)
	}
	return all, err
}

// ParseAll reads a whole list. It returns every mount that it can read, in the
// order of the list, and the first line that it can't read as an error.
func ParseAll(text string) ([]Mount, error) {
	var all []Mount
	var first error
	number := 0
	for line := range strings.Lines(text) {
		number++
		m, err := Parse(line)
		if err == nil {
			all = append(all, m)
		} else if first == nil {
			first = fmt.Errorf("line %d: %w", number, err)
		}
	}
	return all, first
}

// fixed is the number of fields before the optional ones, and tail the number from the "-" that
// ends these.
const (
	fixed = 6
	tail  = 4
)

// Parse reads one line, with or without its newline. The error quotes it.
func Parse(line string) (Mount, error) {
	line = strings.TrimSuffix(line, "\n")
	m, err := parse(line)
	if err != nil {
		return Mount{}, fmt.Errorf("%q is no line of mountinfo: %w", line, err)
	}
	return m, nil
}

func parse(line string) (Mount, error) {
	fields := strings.Split(line, " ")
	if strings.Contains(line, "\n") || len(fields) < fixed+tail {
		return Mount{}, fmt.Errorf("one has %d fields or more", fixed+tail)
	}
	optional := slices.Index(fields[fixed:], "-")
	if optional < 0 {
		return Mount{}, errors.New(`the field "-" is not there`)
	}
	before, after := fields[:fixed+optional], fields[fixed+optional:]
	if len(after) < tail {
		return Mount{}, fmt.Errorf(`there are %d fields from "-" on, not %d`, len(after), tail)
	}
	if slices.Contains(before, "") || after[1] == "" {
		return Mount{}, errors.New("a field is empty that never is")
	}
	id, err := strconv.Atoi(before[0])
	if err != nil {
		return Mount{}, err
	}
	parent, err := strconv.Atoi(before[1])
	if err != nil {
		return Mount{}, err
	}
	return Mount{
		ID:       id,
		Parent:   parent,
		Device:   before[2],
		Root:     Unescape(before[3]),
		Point:    Unescape(before[4]),
		Options:  strings.Split(before[5], ","),
		Optional: before[fixed:],
		Kind:     Unescape(after[1]),
		Source:   Unescape(after[2]),
		// Some file systems (9p on WSL) write spaces in their options as they are.
		Super: options(strings.Join(after[3:], " ")),
	}, nil
}

func options(text string) []string {
	if text == "" {
		return nil
	}
	all := strings.Split(text, ",")
	for i := range all {
		all[i] = Unescape(all[i])
	}
	return all
}

// Unescape undoes the kernel's escapes of names in this list and in others (/proc/swaps): \040 is
// the byte of that octal number. Any other backslash is literal.
func Unescape(s string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			break
		}
		b.WriteString(s[:at])
		c, err := strconv.ParseUint(s[at+1:min(at+4, len(s))], 8, 8)
		if err != nil || len(s) < at+4 {
			b.WriteByte('\\')
			s = s[at+1:]
			continue
		}
		b.WriteByte(byte(c))
		s = s[at+4:]
	}
	return b.String() + s
}

// EscapeOption escapes an option of [Mount.Super] as the kernel does, for a list of options:
// seq_show_option in include/linux/seq_file.h.
func EscapeOption(option string) string { return escape(option, ", \t\n\\") }

// escape writes each byte of s that is in special as its octal number.
func escape(s, special string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(special, s[i]) >= 0 {
			fmt.Fprintf(&b, `\%03o`, s[i])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
