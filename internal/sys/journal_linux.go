package sys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	var s unix.Statfs_t
	if unix.Fstatfs(fd, &s) != nil || uint32(s.Type) != unix.EXT4_SUPER_MAGIC {
		return false
	}
	var is unix.Stat_t
	if unix.Fstat(fd, &is) != nil {
		return true
	}
	device := uint64(is.Dev)
	target, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(device), unix.Minor(device)))
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
