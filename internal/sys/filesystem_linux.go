package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystems returns names of file systems by statfs's magic number. The map is made at each call:
// a program makes few calls, and most make none.
func fileSystems() map[int64]string {
	return map[int64]string{
		unix.AFS_FS_MAGIC:          "afs",
		unix.BCACHEFS_SUPER_MAGIC:  "bcachefs",
		unix.BTRFS_SUPER_MAGIC:     "btrfs",
		unix.CEPH_SUPER_MAGIC:      "ceph",
		unix.CIFS_SUPER_MAGIC:      "cifs",
		unix.ECRYPTFS_SUPER_MAGIC:  "ecryptfs",
		unix.EXFAT_SUPER_MAGIC:     "exfat",
		unix.EXT4_SUPER_MAGIC:      "ext2/ext3/ext4", // one number for the three
		unix.F2FS_SUPER_MAGIC:      "f2fs",
		unix.FUSE_SUPER_MAGIC:      "fuse",
		unix.HOSTFS_SUPER_MAGIC:    "hostfs",
		unix.JFFS2_SUPER_MAGIC:     "jffs2",
		unix.MSDOS_SUPER_MAGIC:     "vfat",
		unix.NFS_SUPER_MAGIC:       "nfs",
		unix.NILFS_SUPER_MAGIC:     "nilfs2",
		unix.OCFS2_SUPER_MAGIC:     "ocfs2",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay",
		unix.PROC_SUPER_MAGIC:      "proc",
		unix.RAMFS_MAGIC:           "ramfs",
		unix.REISERFS_SUPER_MAGIC:  "reiserfs",
		unix.SMB2_SUPER_MAGIC:      "smb2",
		unix.SMB_SUPER_MAGIC:       "smb",
		unix.SYSFS_MAGIC:           "sysfs",
		unix.TMPFS_MAGIC:           "tmpfs",
		unix.UDF_SUPER_MAGIC:       "udf",
		unix.V9FS_MAGIC:            "9p",
		unix.XFS_SUPER_MAGIC:       "xfs",
		0x3153464a:                 "jfs", // fs/jfs/jfs_superblock.h
		0x2fc12fc1:                 "zfs", // OpenZFS, include/sys/zfs_vfsops
		0x5346544e:                 "ntfs",
		0x7366746e:                 "ntfs3",
	}
}

// FileSystem returns the name of dir's file system, or its magic number in hexadecimal (0x…) if it
// has no known name.
func FileSystem(dir string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "", fmt.Errorf("file system of %s is not known: statfs: %w", dir, err)
	}
	// The field has 32 bits on some systems, and may be negative there.
	magic := int64(uint32(stat.Type))
	if name, ok := fileSystems()[magic]; ok {
		return name, nil
	}
	return fmt.Sprintf("%#x", magic), nil
}
