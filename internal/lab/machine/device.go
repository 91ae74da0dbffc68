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

// numbers returns major:minor of the device and of the disks below it.
func (h host) numbers(disk string) []string {
	var all []string
	for _, level := range h.levels(disk) {
		for _, dir := range level {
			if number, ok := h.text(path.Join(h.whole(dir), "dev")); ok && number != "" {
				all = append(all, number)
			}
		}
	}
	return all
}

// disk returns the directory in /sys, without the leading slash, of the whole disk
// under a mount. It finds it by the device's number or, where a file system has only
// an anonymous one (btrfs), by its name.
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

// follow returns where a symbolic link leads.
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

func (h host) diskModel(disk string) Fact {
	file := path.Join(disk, "device/model")
	model, ok := h.text(file)
	if vendor, has := h.text(path.Join(disk, "device/vendor")); ok && has && !strings.HasPrefix(vendor, "0x") {
		model = strings.TrimSpace(vendor + " " + model)
	}
	return known("device model", model, "/"+file, ok && model != "")
}

// diskSize reads a size in sectors of 512 bytes. The disk's own may be larger.
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
