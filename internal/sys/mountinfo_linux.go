package sys

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A mounted is one line of /proc/self/mountinfo: see proc_pid_mountinfo(5).
type mounted struct {
	id, parent  int
	device      string   // major:minor
	root        string   // the folder of the file system that is mounted; "/" unless it is a bind mount
	point       string   // where it is mounted
	options     []string // of this mount
	propagation []string // such as shared:12
	kind        string   // file system type
	source      string   // such as /dev/sda1
	super       []string // options of the file system
}

// mounts reads what is mounted, in the order of mounting.
func mounts() ([]mounted, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("what is mounted is not known: %w", err)
	}
	var all []mounted
	for line := range strings.Lines(string(text)) {
		m, err := parseMounted(line)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func parseMounted(line string) (mounted, error) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 6 || len(right) < 2 {
		return mounted{}, fmt.Errorf("what is mounted is not known: mountinfo has the line %q", line)
	}
	id, err1 := strconv.Atoi(left[0])
	parent, err2 := strconv.Atoi(left[1])
	if err1 != nil || err2 != nil {
		return mounted{}, fmt.Errorf("what is mounted is not known: mountinfo has the line %q", line)
	}
	m := mounted{
		id: id, parent: parent,
		device:      left[2],
		root:        unescaped(left[3]),
		point:       unescaped(left[4]),
		options:     strings.Split(left[5], ","),
		propagation: left[6:],
		kind:        right[0],
		source:      unescaped(right[1]),
	}
	if len(right) > 2 {
		m.super = strings.Split(unescaped(right[2]), ",")
	}
	return m, nil
}

// unescaped undoes mountinfo's \040 for white space, backslash and number sign.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// mountID returns the number of the mount that holds path: statx(2), Linux 5.8.
// Unlike a search by name it also sees through links and stacked mounts.
func mountID(path string) (int, error) {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &stat); err != nil {
		return 0, fmt.Errorf("statx: %w", err)
	}
	if stat.Mask&unix.STATX_MNT_ID == 0 {
		return 0, fmt.Errorf("statx doesn't tell the mount, which takes Linux 5.8: %w", unix.EOPNOTSUPP)
	}
	return int(stat.Mnt_id), nil
}
