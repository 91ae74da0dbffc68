package machine

import (
	"io/fs"
	"path"
	"strings"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

// stackFact names the devices that a write passes, from the one with the file system down
// to the lowest. If a device is more than a disk, it says what it is.
func (h host) stackFact(disk string, mounts []mountinfo.Mount) Fact {
	var levels []string
	for _, level := range h.levels(disk) {
		var names []string
		for _, dir := range level {
			name := path.Base(dir)
			if kind := h.layer(dir, mounts); kind != "" {
				name += " (" + kind + ")"
			}
			names = append(names, name)
		}
		levels = append(levels, strings.Join(names, ", "))
	}
	source := "/" + disk + "/{slaves,dm/uuid,md/level,loop/backing_file}"
	return Fact{"device stack", strings.Join(levels, " on "), source}
}

// levels returns the directories of a device, then of those below it, and so on; each
// once.
func (h host) levels(disk string) [][]string {
	var levels [][]string
	seen := map[string]bool{disk: true}
	for level := []string{disk}; len(level) > 0; {
		levels = append(levels, level)
		var next []string
		for _, dir := range level {
			for _, under := range h.slaves(dir) {
				if !seen[under] {
					seen[under] = true
					next = append(next, under)
				}
			}
		}
		level = next
	}
	return levels
}

// slaves returns the directories of the devices directly below one.
func (h host) slaves(dir string) []string {
	entries, _ := fs.ReadDir(h.files, path.Join(dir, "slaves"))
	var dirs []string
	for _, entry := range entries {
		link := "sys/class/block/" + entry.Name()
		target, ok := h.follow(link)
		if !ok {
			target = link
		}
		dirs = append(dirs, target)
	}
	return dirs
}

// layer says what a device is, if it is not a disk or a part of one.
func (h host) layer(dir string, mounts []mountinfo.Mount) string {
	if uuid, ok := h.text(path.Join(dir, "dm/uuid")); ok {
		return h.mapping(dir, uuid)
	}
	if level, ok := h.text(path.Join(dir, "md/level")); ok {
		return strings.TrimSpace("md " + level)
	}
	if file, ok := h.text(path.Join(dir, "loop/backing_file")); ok {
		kind := "file " + file
		if m, ok := findMount(mounts, file); ok {
			kind += " on " + m.Kind
		}
		return kind
	}
	if name := path.Base(dir); strings.HasPrefix(name, "zram") || strings.HasPrefix(name, "ram") {
		return inMemory
	}
	return ""
}

// inMemory is the layer of a disk that is made of memory.
const inMemory = "in memory"

// mappings gives the maker of a mapped device by the beginning of its UUID.
var mappings = []struct{ prefix, kind string }{
	{"CRYPT-VERITY-", "verity"},
	{"CRYPT-", "crypt"},
	{"LVM-", "LVM"},
	{"mpath-", "multipath"},
	{"part", "partition"},
	{"DMRAID-", "raid"},
	{"VDO-", "VDO"},
	{"stratis-", "stratis"},
}

// mapping says what a mapped device is. /sys does not show its table, but the UUID
// names its maker. A thin one or a snapshot is on a device whose UUID says so.
func (h host) mapping(dir, uuid string) string {
	if kind := lvmLayer(uuid); kind != "" {
		return kind
	}
	kind := "mapped"
	for _, m := range mappings {
		if strings.HasPrefix(uuid, m.prefix) {
			kind = m.kind
			break
		}
	}
	for _, under := range h.slaves(dir) {
		below, _ := h.text(path.Join(under, "dm/uuid"))
		switch lvmLayer(below) {
		case thinPool:
			return kind + " thin"
		case snapshotStore:
			return kind + " snapshot"
		}
	}
	return kind
}

const (
	thinPool      = "thin pool"
	snapshotStore = "snapshot store"
)

// lvmLayer names LVM's own layers, which it marks at the end of the UUID: see
// lv_layer in its lib/activate/dev_manager.c.
func lvmLayer(uuid string) string {
	switch {
	case !strings.HasPrefix(uuid, "LVM-"):
		return ""
	case strings.HasSuffix(uuid, "-tpool"):
		return thinPool
	case strings.HasSuffix(uuid, "-cow"):
		return snapshotStore
	case strings.HasSuffix(uuid, "-real"):
		return "snapshot origin"
	case strings.HasSuffix(uuid, "-vpool"):
		return "VDO pool"
	}
	return ""
}
