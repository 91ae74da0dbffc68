package machine

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const mountinfo = "/proc/self/mountinfo"

// A mount is one line of /proc/self/mountinfo: see proc_pid_mountinfo(5).
type mount struct {
	device  string // major:minor
	root    string // the folder of the file system that is mounted; "/" unless it is a bind mount
	point   string // where it is mounted
	options string // of this mount
	kind    string // file system type
	source  string // such as /dev/sda1
	super   string // options of the file system
}

// parseMounts reads mountinfo; a line that it can't read is left out.
func parseMounts(text string) []mount {
	var mounts []mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 6 || len(right) < 2 {
			continue
		}
		m := mount{
			device:  left[2],
			root:    unescape(left[3]),
			point:   unescape(left[4]),
			options: left[5],
			kind:    right[0],
			source:  unescape(right[1]),
		}
		if len(right) > 2 {
			m.super = right[2]
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape undoes mountinfo's \040 for white space and backslash.
func unescape(s string) string {
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

// findMount returns the mount that holds an absolute path: the one with the
// longest point above it, and of several on one point the last, which hides the
// others.
func findMount(mounts []mount, file string) (found mount, ok bool) {
	for _, m := range mounts {
		if within(file, m.point) && len(m.point) >= len(found.point) {
			found, ok = m, true
		}
	}
	return found, ok
}

// within reports whether file is folder or lies below it.
func within(file, folder string) bool {
	rest, ok := strings.CutPrefix(file, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// place names the mount point, and what is mounted there if it is not a whole
// file system.
func (m mount) place() string {
	if m.root == "/" {
		return m.point
	}
	return m.point + " (bind mount of " + m.root + ")"
}

// allOptions joins the mount's options and the file system's, each once.
func (m mount) allOptions() string {
	var all []string
	seen := map[string]bool{}
	for option := range strings.SplitSeq(m.options+","+m.super, ",") {
		if option != "" && !seen[option] {
			seen[option] = true
			all = append(all, option)
		}
	}
	return strings.Join(all, ",")
}

// upper returns the upper folder of an overlay, which takes what is written, and
// the mount that holds it. The folder's name is as it was seen by who mounted
// the overlay: from inside a container it leads nowhere.
func (h host) upper(mounts []mount, overlay mount) (dir string, m mount, ok bool) {
	for option := range strings.SplitSeq(overlay.super, ",") {
		if name, is := strings.CutPrefix(option, "upperdir="); is {
			dir = unescape(name)
		}
	}
	info, err := fs.Stat(h.files, strings.TrimPrefix(dir, "/"))
	if err != nil || !info.IsDir() || !path.IsAbs(dir) {
		return dir, mount{}, false
	}
	m, ok = findMount(mounts, dir)
	return dir, m, ok && m.kind != overlay.kind
}

// upperFact names the file system below an overlay.
func upperFact(m, upper mount, dir string, ok bool) Fact {
	const name = "overlay upper file system"
	switch {
	case m.kind == "" || m.kind == "overlay" && dir == "":
		return Fact{name, Unknown, mountinfo}
	case m.kind != "overlay":
		return Fact{name, "none", mountinfo + " (not an overlay)"}
	case !ok:
		return Fact{name, Unknown, "upperdir " + dir + " is out of sight"}
	}
	return Fact{name, upper.kind, mountinfo + " for upperdir " + dir}
}
