package machine

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

// mounts returns what is mounted; a line that can't be read is left out.
func (h host) mounts() []mountinfo.Mount {
	text, _ := fs.ReadFile(h.files, strings.TrimPrefix(mountinfo.Path, "/"))
	mounts, _ := mountinfo.ParseAll(string(text))
	return mounts
}

// findMount returns the mount that holds an absolute path: the one with the
// longest point above it, and of several on one point the last, which hides the
// others.
func findMount(mounts []mountinfo.Mount, file string) (found mountinfo.Mount, ok bool) {
	for _, m := range mounts {
		if within(file, m.Point) && len(m.Point) >= len(found.Point) {
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

// pointOf names the mount point, and what is mounted there if it is not a whole
// file system.
func pointOf(m mountinfo.Mount) string {
	if m.Root == "/" {
		return m.Point
	}
	return m.Point + " (bind mount of " + m.Root + ")"
}

// allOptions joins the mount's options and the file system's, each once.
func allOptions(m mountinfo.Mount) string {
	var all []string
	for _, option := range slices.Concat(m.Options, m.Super) {
		if option = mountinfo.EscapeOption(option); option != "" && !slices.Contains(all, option) {
			all = append(all, option)
		}
	}
	return strings.Join(all, ",")
}

// upper returns the upper folder of an overlay, which takes what is written, and
// the mount that holds it. The folder's name is as it was seen by who mounted
// the overlay: from inside a container it leads nowhere.
func (h host) upper(mounts []mountinfo.Mount, overlay mountinfo.Mount) (dir string, m mountinfo.Mount, ok bool) {
	for _, option := range overlay.Super {
		if name, is := strings.CutPrefix(option, "upperdir="); is {
			dir = overlayName(name)
		}
	}
	info, err := fs.Stat(h.files, strings.TrimPrefix(dir, "/"))
	if err != nil || !info.IsDir() || !path.IsAbs(dir) {
		return dir, mountinfo.Mount{}, false
	}
	m, ok = findMount(mounts, dir)
	return dir, m, ok && m.Kind != overlay.Kind
}

// overlayName undoes the backslashes that overlay wants before commas, colons and
// backslashes, and shows as it was given them: ovl_unescape in fs/overlayfs.
func overlayName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '\\' && i+1 < len(name) {
			i++
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// upperFact names the file system below an overlay.
func upperFact(m, upper mountinfo.Mount, dir string, ok bool) Fact {
	const name = "overlay upper file system"
	switch {
	case m.Kind == "" || m.Kind == "overlay" && dir == "":
		return Fact{name, Unknown, mountinfo.Path}
	case m.Kind != "overlay":
		return Fact{name, "none", mountinfo.Path + " (not an overlay)"}
	case !ok:
		return Fact{name, Unknown, "upperdir " + dir + " is out of sight"}
	}
	return Fact{name, upper.Kind, mountinfo.Path + " for upperdir " + dir}
}
