package machine

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

// sector is the unit of sizes and counts in /sys/block: see
// Documentation/block/stat.rst of the kernel.
const sector = 512

// device returns the facts about the disk under a mount. They are unknown for a file
// system without one (tmpfs, network, an overlay whose upper directory is out of sight).
func (h host) device(mounts []mountinfo.Mount, m mountinfo.Mount) []Fact {
	disk, ok := h.disk(m)
	if !ok {
		source := "/sys/dev/block"
		if m.Kind != "" {
			source = m.Kind + " (" + m.Source + ") has no block device that can be seen"
		}
		var facts []Fact
		for _, name := range []string{
			"device", "device stack", "device model", "device size", "rotational", "I/O scheduler",
			"write cache", "FUA", "cgroup I/O limit",
		} {
			facts = append(facts, Fact{name, Unknown, source})
		}
		return facts
	}
	modelFile := path.Join(disk, "device/model")
	model, ok := h.text(modelFile)
	if vendor, has := h.text(path.Join(disk, "device/vendor")); ok && has && !strings.HasPrefix(vendor, "0x") {
		model = strings.TrimSpace(vendor + " " + model)
	}
	sizeFile := path.Join("/", disk, "size")
	sectors, _ := h.text(sizeFile) // of 512 bytes; the disk's own sectors may be larger
	size, isSize := scaled(sectors, sector)
	queue := path.Join(disk, "queue")
	scheduler, isScheduler := h.text(path.Join(queue, "scheduler")) // such as "none [mq-deadline] kyber"
	if _, after, cut := strings.Cut(scheduler, "["); cut {
		scheduler, _, _ = strings.Cut(after, "]")
	}
	var numbers []string // major:minor of the device and of the disks below it
	for _, level := range h.levels(disk) {
		for _, dir := range level {
			if number, ok := h.text(path.Join(h.whole(dir), "dev")); ok && number != "" {
				numbers = append(numbers, number)
			}
		}
	}
	return []Fact{
		{"device", h.diskName(disk), "/" + disk},
		h.stackFact(disk, mounts),
		known("device model", model, "/"+modelFile, ok && model != ""),
		known("device size", formatBytes(size), sizeFile, isSize),
		h.yesNo("rotational", path.Join(queue, "rotational")),
		known("I/O scheduler", scheduler, "/"+path.Join(queue, "scheduler"), isScheduler && scheduler != ""),
		h.fact("write cache", path.Join("/", queue, "write_cache")),
		h.yesNo("FUA", path.Join(queue, "fua")),
		h.ioLimit(numbers),
	}
}

// stackFact names the devices that a write passes, from the one with the file system down
// to the lowest. For a device that is not a plain disk it adds the kind.
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

// disk returns the directory in /sys, without the leading slash, of the whole disk
// under a mount. It finds it by the device's number. For a file system with an anonymous number (btrfs)
// it finds it by the device's name.
func (h host) disk(m mountinfo.Mount) (string, bool) {
	dir, ok := h.follow("sys/dev/block/" + m.Device)
	if !ok && strings.HasPrefix(m.Source, "/dev/") {
		device := strings.TrimPrefix(m.Source, "/")
		if target, ok := h.follow(device); ok { // /dev/mapper/name is a link to dm-0
			device = target
		} else { // in a container /dev may lack a mapped device: find it by its own name
			files := h.glob("/sys/class/block/dm-*/dm/name")
			at := slices.IndexFunc(files, func(file string) bool { text, ok := h.text(file); return ok && text == path.Base(device) })
			if at >= 0 {
				device = path.Dir(path.Dir(files[at]))
			}
		}
		dir, ok = h.follow("sys/class/block/" + path.Base(device))
	}
	return h.whole(dir), ok
}

// whole returns the disk of a partition, or the directory itself if it is no partition.
func (h host) whole(dir string) string {
	if _, isPart := h.text(path.Join(dir, "partition")); isPart {
		return path.Dir(dir)
	}
	return dir
}

// follow returns the target of a symbolic link.
func (h host) follow(link string) (string, bool) {
	target, err := fs.ReadLink(h.files, link)
	if err != nil {
		return "", false
	}
	return path.Join(path.Dir(link), target), true
}

// diskName names a disk. For a mapped one it adds its own name and the devices below it.
func (h host) diskName(disk string) string {
	name := path.Base(disk)
	if mapped, ok := h.text(path.Join(disk, "dm/name")); ok && mapped != "" {
		name += " " + mapped
	}
	if file, ok := h.text(path.Join(disk, "loop/backing_file")); ok && file != "" {
		name += " on " + file
	}
	under, _ := fs.ReadDir(h.files, path.Join(disk, "slaves"))
	for i, entry := range under {
		join := ", "
		if i == 0 {
			join = " on "
		}
		name += join + entry.Name()
	}
	return name
}

func (h host) yesNo(name, file string) Fact {
	text, _ := h.text(file)
	value, ok := map[string]string{"0": "no", "1": "yes"}[text]
	return known(name, value, "/"+file, ok)
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

// layer names the kind of a device that is not a disk or a part of one.
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

// mapping names the kind of a mapped device. /sys does not show its table, but its UUID names its
// maker. For a thin volume or a snapshot, the UUID of a device below it tells.
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
