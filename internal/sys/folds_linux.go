package sys

import "golang.org/x/sys/unix"

const casefold = 0x40000000 // FS_CASEFOLD_FL, include/uapi/linux/fs.h

// FoldsNames reports whether a directory may take two names for one. Where names are told apart by
// their bytes, and on ext4, f2fs and tmpfs where a directory says that it folds, this is known; of
// other file systems, all FUSE among them, it is not.
func (Disk) FoldsNames(dir int) bool {
	var s unix.Statfs_t
	if err := Uninterrupted(func() error { return unix.Fstatfs(dir, &s) }); err != nil {
		return true
	}
	switch uint32(s.Type) {
	case unix.BTRFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.RAMFS_MAGIC, unix.BCACHEFS_SUPER_MAGIC:
		return false
	case unix.EXT4_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		flags, err := unix.IoctlGetUint32(dir, unix.FS_IOC_GETFLAGS)
		return err == nil && flags&casefold != 0
	}
	return true
}
