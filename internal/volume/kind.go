package volume

import (
	"fmt"
	"slices"
	"strings"
)

// A Kind is a file system with its options, by its name. Names are ext2, ext3, ext4 (data ordered),
// ext4-writeback, ext4-journal, ext4-nojournal, xfs, btrfs, f2fs, jfs, nilfs2, reiserfs, bfs, minix
// and tmpfs.
type Kind struct {
	Name string
	Type string // as mount(8) calls it, such as ext4
	// Program makes it, and Debian is the package that has that program. Both are
	// empty for tmpfs, which needs no program.
	Program, Debian string
	Make            []string // arguments of Program, before the image's name
	Check           []string // the program that checks it, with its arguments before the image's name; nil: there is none
	Options         string   // of the mount
	Least           int64    // bytes of the smallest image
	Dir             string   // an existing directory, which is taken as it is; empty: it is made
}

const mebibyte = 1 << 20

// extended are the arguments for all of ext2 to ext4 (mke2fs(8)). The kernel gets no work
// for later, in the middle of a measurement. There is an inode for each 4 KiB, for many
// small files. A block is a page, also in a small image.
var extended = []string{"-q", "-F", "-b", "4096", "-i", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"}

func ext(name, version, options string, more ...string) Kind {
	return Kind{
		Name: name, Type: version, Program: "mkfs." + version, Debian: "e2fsprogs",
		Make: slices.Concat(extended, more), Check: []string{"e2fsck", "-f", "-n"},
		Options: options, Least: 16 * mebibyte,
	}
}

// Kinds returns all known kinds, whether or not they can be made here. The caller
// owns the result.
func Kinds() []Kind {
	return []Kind{
		ext("ext2", "ext2", ""),
		ext("ext3", "ext3", "data=ordered"),
		ext("ext4", "ext4", "data=ordered"),
		ext("ext4-writeback", "ext4", "data=writeback"),
		ext("ext4-journal", "ext4", "data=journal"),
		ext("ext4-nojournal", "ext4", "", "-O", "^has_journal"),
		{Name: "xfs", Type: "xfs", Program: "mkfs.xfs", Debian: "xfsprogs",
			Make: []string{"-q", "-f"}, Check: []string{"xfs_repair", "-n", "-f"},
			Least: 300 * mebibyte}, // mkfs.xfs(8), since 5.19
		{Name: "btrfs", Type: "btrfs", Program: "mkfs.btrfs", Debian: "btrfs-progs",
			Make: []string{"-q", "-f"}, Check: []string{"btrfs", "check", "--readonly"},
			Least: 112 * mebibyte}, // mkfs.btrfs(8) says 109 MiB, with metadata kept twice
		{Name: "f2fs", Type: "f2fs", Program: "mkfs.f2fs", Debian: "f2fs-tools",
			Make: []string{"-q", "-f"}, Check: []string{"fsck.f2fs", "--dry-run"},
			Least: 64 * mebibyte},
		{Name: "jfs", Type: "jfs", Program: "mkfs.jfs", Debian: "jfsutils",
			Make: []string{"-q"}, Check: []string{"fsck.jfs", "-n", "-f"},
			Least: 16 * mebibyte},
		{Name: "nilfs2", Type: "nilfs2", Program: "mkfs.nilfs2", Debian: "nilfs-tools",
			Make:  []string{"-q", "-f"},
			Least: 129 * mebibyte}, // it says that it needs 134,221,824 bytes
		{Name: "reiserfs", Type: "reiserfs", Program: "mkfs.reiserfs", Debian: "reiserfsprogs",
			Make: []string{"-q", "-f"}, Check: []string{"fsck.reiserfs", "--check", "--yes", "--quiet"},
			Least: 34 * mebibyte}, // its journal has 32 MiB
		{Name: "bfs", Type: "bfs", Program: "mkfs.bfs", Debian: "util-linux",
			Least: mebibyte},
		{Name: "minix", Type: "minix", Program: "mkfs.minix", Debian: "util-linux",
			Make: []string{"-3"}, Check: []string{"fsck.minix", "-f"},
			Least: mebibyte},
		{Name: "tmpfs", Type: "tmpfs", Least: mebibyte},
	}
}

// Parse reads names between commas, such as ext4,xfs. It returns each once, in the
// order of the text. An error names the unknown name and the known ones.
func Parse(text string) ([]Kind, error) {
	known := Kinds()
	var kinds []Kind
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(known, func(k Kind) bool { return k.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("%q is not a file system that can be made; use %s", name, strings.Join(names(known), ", "))
		}
		if !slices.ContainsFunc(kinds, func(k Kind) bool { return k.Name == name }) {
			kinds = append(kinds, known[at])
		}
	}
	return kinds, nil
}

func names(kinds []Kind) []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}

// SizeFor returns how many bytes an image needs for a number of files with a number of bytes in
// all. It counts journals, tables, a copy of the metadata and free space: a file system that is
// nearly full is slow. It is never less than Least.
func (k Kind) SizeFor(data, files int64) int64 {
	const journals = 256 * mebibyte // for 64 GiB, by mke2fs; mkfs.xfs takes 64 MiB
	const entry = 8 << 10           // a file's last block, its inode, its name
	if k.Type == "tmpfs" {
		return max(k.Least, roundUp(data+files*entry))
	}
	return max(k.Least, roundUp(data+data/4+files*entry+journals))
}

func roundUp(n int64) int64 { return (n + mebibyte - 1) / mebibyte * mebibyte }
