package machine

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

// directory returns the facts about the file system and the device that hold an
// absolute path. The first is the file system's type.
func (h host) directory(dir string) []Fact {
	mounts := h.mounts()
	m, ok := findMount(mounts, dir)
	below := m
	upperDir, upper, seen := h.upper(mounts, m)
	if seen {
		below = upper
	}
	point := m.Point
	if m.Root != "/" { // not a whole file system
		point += " (bind mount of " + m.Root + ")"
	}
	var options []string // the mount's and the file system's, each once
	for _, option := range slices.Concat(m.Options, m.Super) {
		if option = mountinfo.EscapeOption(option); option != "" && !slices.Contains(options, option) {
			options = append(options, option)
		}
	}
	facts := []Fact{
		known("file system", m.Kind, mountinfo.Path, ok),
		known("mount point", point, mountinfo.Path, ok),
		known("mount options", strings.Join(options, ","), mountinfo.Path, ok),
		upperFact(m, upper, upperDir, seen),
	}
	return append(facts, h.device(mounts, below)...)
}

// mounts returns what is mounted. It leaves out a line that it can't read.
func (h host) mounts() []mountinfo.Mount {
	text, _ := fs.ReadFile(h.files, strings.TrimPrefix(mountinfo.Path, "/"))
	mounts, _ := mountinfo.ParseAll(string(text))
	return mounts
}

// findMount returns the mount that holds an absolute path. It is the one with the
// longest point above it. If several are on one point it is the last, which hides the
// others.
func findMount(mounts []mountinfo.Mount, file string) (found mountinfo.Mount, ok bool) {
	for _, m := range mounts {
		if within(file, m.Point) && len(m.Point) >= len(found.Point) {
			found, ok = m, true
		}
	}
	return found, ok
}

// within reports whether file is directory or lies below it.
func within(file, dir string) bool {
	rest, ok := strings.CutPrefix(file, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// upper returns the upper directory of an overlay, where its files are written, and the
// mount that holds it. The directory's name is valid in the mount namespace in which the overlay was
// mounted; inside a container it does not exist.
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

// overlayName removes the backslashes before commas, colons and backslashes, which overlay
// requires and shows as given: ovl_unescape in fs/overlayfs.
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
