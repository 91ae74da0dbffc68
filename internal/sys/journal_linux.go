package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// LacksJournal reports whether fd is on ext2, or on an ext4 that is not known to have a journal.
// There a crash during later work in a directory may lose durable names: the directory's blocks
// reach the disk one by one.
//
// statfs(2) has one number for ext2, ext3 and ext4. The type of the mount does not help: ext4 may
// be made or mounted (noload) without a journal. The kernel's ext4 shows the journal's thread in
// /sys, or <none>, also for each ext2 that it serves. An older driver of ext2 shows nothing, which
// counts as no journal. To miss a journal costs some time, to assume a missing one costs names.
func (Disk) LacksJournal(fd int) bool {
	if groundOf(fd).of(fd) != unix.EXT4_SUPER_MAGIC {
		return false
	}
	var is unix.Statx_t
	if statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID_UNIQUE, &is) != nil {
		return true
	}
	if is.Mask&unix.STATX_MNT_ID_UNIQUE == 0 { // before Linux 6.8
		return lacksJournal(is.Dev_major, is.Dev_minor)
	}
	lacks, known := journalless.Load(is.Mnt_id)
	if !known {
		lacks = lacksJournal(is.Dev_major, is.Dev_minor)
		journalless.Store(is.Mnt_id, lacks)
	}
	return lacks.(bool)
}

// journalless holds what LacksJournal found, for each mount: a journal neither comes nor goes while its file
// system is mounted. As for hiding, the number of a device is no key.
var journalless sync.Map // of bool, by uint64

func lacksJournal(major, minor uint32) bool {
	target, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", major, minor))
	if err != nil {
		return true
	}
	task, err := os.ReadFile("/sys/fs/ext4/" + filepath.Base(target) + "/journal_task")
	return err != nil || strings.TrimSpace(string(task)) == "<none>"
}

// LacksJournal is [Disk.LacksJournal] for a directory's path.
func LacksJournal(dir string) bool {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return Disk{}.LacksJournal(fd)
}
