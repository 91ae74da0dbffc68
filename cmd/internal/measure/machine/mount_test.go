package machine

import (
	"strings"
	"testing"
)

const mounts = `27 1 254:2 / / rw,relatime shared:1 - ext4 /dev/vda2 rw,discard,errors=remount-ro
28 27 0:25 / /tmp rw,nosuid - tmpfs tmpfs rw,size=4k
29 27 254:2 /srv/data /data rw,noatime shared:1 - ext4 /dev/vda2 rw,discard
30 27 0:44 / /pool rw - btrfs /dev/mapper/vg-pool rw,compress=zstd:1
31 27 0:45 / /over rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
32 27 0:46 / /with\040space rw - tmpfs a\134b rw
33 28 7:0 / /tmp rw - xfs /dev/loop0 rw
34 27 259:1 / /nvme rw shared:5 master:2 - ext4 /dev/nvme0n1p1 rw
not a mount
`

func disks() host {
	return tree(map[string]string{
		"proc/self/mountinfo":     mounts,
		"sys/dev/block/254:2":     "-> ../../devices/pci0/virtio1/block/vda/vda2",
		"sys/dev/block/7:0":       "-> ../../devices/virtual/block/loop0",
		"sys/dev/block/259:1":     "-> ../../devices/pci1/nvme/nvme0/nvme0n1/nvme0n1p1",
		"dev/mapper/vg-pool":      "-> ../dm-0",
		"sys/class/block/dm-0":    "-> ../../devices/virtual/block/dm-0",
		"sys/class/block/vda2":    "-> ../../devices/pci0/virtio1/block/vda/vda2",
		"proc/sys/vm/dirty_ratio": "20\n",

		"sys/devices/pci0/virtio1/block/vda/vda2/partition":    "2\n",
		"sys/devices/pci0/virtio1/block/vda/queue/rotational":  "1\n",
		"sys/devices/pci0/virtio1/block/vda/queue/scheduler":   "none [mq-deadline] kyber bfq\n",
		"sys/devices/pci0/virtio1/block/vda/queue/write_cache": "write back\n",
		"sys/devices/pci0/virtio1/block/vda/queue/fua":         "0\n",
		"sys/devices/pci0/virtio1/block/vda/device/vendor":     "0x1af4\n",

		"sys/devices/virtual/block/loop0/loop/backing_file": "/images/disk.img\n",
		"sys/devices/virtual/block/loop0/queue/scheduler":   "none\n",

		"sys/devices/virtual/block/dm-0/dm/name":           "vg-pool\n",
		"sys/devices/virtual/block/dm-0/slaves/sda3/x":     "",
		"sys/devices/virtual/block/dm-0/slaves/sdb1/x":     "",
		"sys/devices/virtual/block/dm-0/queue/write_cache": "write through\n",

		"sys/devices/pci1/nvme/nvme0/nvme0n1/nvme0n1p1/partition": "1\n",
		"sys/devices/pci1/nvme/nvme0/nvme0n1/device/model":        "Fast Disk 1TB            \n",
		"sys/devices/pci1/nvme/nvme0/nvme0n1/queue/rotational":    "0\n",
		"sys/devices/pci1/nvme/nvme0/nvme0n1/queue/fua":           "1\n",
	})
}

func TestDirectoryOnAPartition(t *testing.T) {
	check := checker(t, disks().directory("/home/me"))
	check("file system", "ext4")
	check("mount point", "/")
	check("mount options", "rw,relatime,discard,errors=remount-ro")
	check("device", "vda")
	check("device model", Unknown)
	check("rotational", "yes")
	check("I/O scheduler", "mq-deadline")
	check("write cache", "write back")
	check("FUA", "no")
}

func TestDirectoryOnNVMe(t *testing.T) {
	check := checker(t, disks().directory("/nvme"))
	check("device", "nvme0n1")
	check("device model", "Fast Disk 1TB")
	check("rotational", "no")
	check("FUA", "yes")
	check("write cache", Unknown)
}

func TestDirectoryOnABindMount(t *testing.T) {
	check := checker(t, disks().directory("/data/x"))
	check("mount point", "/data (bind mount of /srv/data)")
	check("mount options", "rw,noatime,discard")
	check("device", "vda")
}

func TestDirectoryOnAMountThatHidesAnother(t *testing.T) {
	check := checker(t, disks().directory("/tmp"))
	check("file system", "xfs")
	check("device", "loop0 on /images/disk.img")
	check("I/O scheduler", "none")
}

func TestDirectoryOnAMappedDisk(t *testing.T) {
	check := checker(t, disks().directory("/pool/a"))
	check("file system", "btrfs")
	check("device", "dm-0 vg-pool on sda3, sdb1")
	check("write cache", "write through")
}

func TestDirectoryWithoutADisk(t *testing.T) {
	check := checker(t, disks().directory("/over/a"))
	check("file system", "overlay")
	check("mount options", "rw,lowerdir=/l,upperdir=/u,workdir=/w")
	check("device", Unknown)
	check("FUA", Unknown)
}

func TestFindMount(t *testing.T) {
	all := disks().mounts()
	check := func(path, want string) {
		t.Helper()
		if got, _ := findMount(all, path); got.Point != want {
			t.Errorf("findMount(%q) = %q, want %q", path, got.Point, want)
		}
	}
	check("/", "/")
	check("/data", "/data")
	check("/database", "/")
	check("/data/x/y", "/data")
	check("/with space/x", "/with space")
}

func TestMountThatCannotBeReadIsLeftOut(t *testing.T) {
	if all := disks().mounts(); len(all) != strings.Count(mounts, " - ") {
		t.Errorf("%d mounts: %+v", len(all), all)
	}
}

func TestMountOptionsStandOnceAndAsTheKernelWritesThem(t *testing.T) {
	h := tree(map[string]string{"proc/self/mountinfo": "31 1 0:45 / / rw,noatime - overlay overlay rw,upperdir=/a\\134\\054b\\040c,noatime\n"})
	check := checker(t, h.directory("/x"))
	check("mount options", `rw,noatime,upperdir=/a\134\054b\040c`)
	check("overlay upper file system", Unknown)
	if fact := Get(h.directory("/x"), "overlay upper file system"); fact.Source != "upperdir /a,b c is out of sight" {
		t.Errorf("source = %q", fact.Source)
	}
}

func TestOverlayName(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		if got := overlayName(in); got != want {
			t.Errorf("overlayName(%q) = %q, want %q", in, got, want)
		}
	}
	check("/a b", "/a b")
	check(`/a\,b\:c`, "/a,b:c")
	check(`/a\\b\\\,`, `/a\b\,`)
	check(`/a\`, `/a\`)
}
