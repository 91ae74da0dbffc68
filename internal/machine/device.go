package machine

import (
	"io/fs"
	"path"
	"strings"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

// sector is the unit of sizes and counts in /sys/block: see
// Documentation/block/stat.rst of the kernel.
const sector = 512

// folder returns the facts about the file system and the device that hold an
// absolute path. The first is the file system's type.
func (h host) folder(dir string) []Fact {
	mounts := h.mounts()
	m, ok := findMount(mounts, dir)
	below := m
	upperDir, upper, seen := h.upper(mounts, m)
	if seen {
		below = upper
	}
	facts := []Fact{
		known("file system", m.Kind, mountinfo.Path, ok),
		known("mount point", pointOf(m), mountinfo.Path, ok),
		known("mount options", allOptions(m), mountinfo.Path, ok),
		upperFact(m, upper, upperDir, seen),
	}
	return append(facts, h.device(mounts, below)...)
}

// device returns the facts about the disk under a mount. A file system without
// one (tmpfs, network, an overlay whose upper folder is out of sight) has unknown
// ones.
func (h host) device(mounts []mountinfo.Mount, m mountinfo.Mount) []Fact {
	disk, ok := h.disk(m)
	if !ok {
		return noDevice(m)
	}
	queue := path.Join(disk, "queue")
	return []Fact{
		{"device", h.diskName(disk), "/" + disk},
		h.stackFact(disk, mounts),
		h.diskModel(disk),
		h.diskSize(path.Join("/", disk, "size")),
		h.yesNo("rotational", path.Join(queue, "rotational")),
		h.scheduler(path.Join(queue, "scheduler")),
		h.fact("write cache", path.Join("/", queue, "write_cache")),
		h.yesNo("FUA", path.Join(queue, "fua")),
		h.ioLimit(h.numbers(disk)),
	}
}

func noDevice(m mountinfo.Mount) []Fact {
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

// disk returns the folder in /sys, without the leading slash, of the whole disk
// under a mount: found by the device's number or, where a file system has only
// an anonymous one (btrfs), by its name.
func (h host) disk(m mountinfo.Mount) (string, bool) {
	folder, ok := h.follow("sys/dev/block/" + m.Device)
	if !ok && strings.HasPrefix(m.Source, "/dev/") {
		device := strings.TrimPrefix(m.Source, "/")
		if target, ok := h.follow(device); ok { // /dev/mapper/name is a link to dm-0
			device = target
		} else if target, ok := h.mapped(path.Base(device)); ok {
			device = target
		}
		folder, ok = h.follow("sys/class/block/" + path.Base(device))
	}
	return h.whole(folder), ok
}

// mapped finds a mapped device by its own name: in a container /dev may lack it.
func (h host) mapped(name string) (string, bool) {
	for _, file := range h.glob("/sys/class/block/dm-*/dm/name") {
		if text, ok := h.text(file); ok && text == name {
			return path.Dir(path.Dir(file)), true
		}
	}
	return "", false
}

// whole returns the disk that a partition is a part of, else the folder itself.
func (h host) whole(folder string) string {
	if _, isPart := h.text(path.Join(folder, "partition")); isPart {
		return path.Dir(folder)
	}
	return folder
}

// follow returns where a symbolic link leads.
func (h host) follow(link string) (string, bool) {
	target, err := fs.ReadLink(h.files, link)
	if err != nil {
		return "", false
	}
	return path.Join(path.Dir(link), target), true
}

// diskName names a disk and, for a mapped one, its own name and what it lies on.
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

func (h host) diskModel(disk string) Fact {
	file := path.Join(disk, "device/model")
	model, ok := h.text(file)
	if vendor, has := h.text(path.Join(disk, "device/vendor")); ok && has && !strings.HasPrefix(vendor, "0x") {
		model = strings.TrimSpace(vendor + " " + model)
	}
	return known("device model", model, "/"+file, ok && model != "")
}

// diskSize reads a size in sectors, which are of 512 bytes whatever the disk's are.
func (h host) diskSize(file string) Fact {
	text, _ := h.text(file)
	size, ok := scaled(text, sector)
	return known("device size", formatBytes(size), file, ok)
}

// scheduler picks the chosen one out of "none [mq-deadline] kyber".
func (h host) scheduler(file string) Fact {
	text, ok := h.text(file)
	if _, after, cut := strings.Cut(text, "["); cut {
		text, _, _ = strings.Cut(after, "]")
	}
	return known("I/O scheduler", text, "/"+file, ok && text != "")
}

func (h host) yesNo(name, file string) Fact {
	text, _ := h.text(file)
	value, ok := map[string]string{"0": "no", "1": "yes"}[text]
	return known(name, value, "/"+file, ok)
}
