package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// makers are the programs that make file systems, the packages of Debian that have
// them, and what they are told.
var makers = map[string]struct {
	program, debian string
	args            []string
}{
	"ext4":  {"mkfs.ext4", "e2fsprogs", []string{"-q", "-F", "-i", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"}}, // an inode for each small file, and no work left for later
	"xfs":   {"mkfs.xfs", "xfsprogs", []string{"-q", "-f"}},
	"btrfs": {"mkfs.btrfs", "btrfs-progs", []string{"-q", "-f"}},
}

// smallest is the least size of an image, of which only what is written takes room.
const smallest = 2 << 30

// An image is a place on a file system of its own, new for each round.
type image struct {
	kind, dir string
	room      int64 // what a round takes
}

// size leaves room for what the file system needs itself.
func (i *image) size() int64 { return max(smallest, 2*i.room) }

func (i *image) String() string {
	return fmt.Sprintf("%s in an image of %.3g GiB on %s, new for each round", i.kind, float64(i.size())/(1<<30), fileSystemOf(i.dir))
}

func (i *image) can() error {
	if os.Getuid() != 0 {
		return errors.New("only root can mount an image")
	}
	m := makers[i.kind]
	if _, err := exec.LookPath(m.program); err != nil {
		return fmt.Errorf("%s is not installed (Debian: apt-get install %s)", m.program, m.debian)
	}
	return nil
}

// open makes and mounts the file system. Its done takes it down and removes it.
func (i *image) open(ctx context.Context) (dir string, done func() error, err error) {
	file, dir := filepath.Join(i.dir, i.kind+".image"), filepath.Join(i.dir, i.kind)
	if err := i.create(file); err != nil {
		return "", nil, err
	}
	m := makers[i.kind]
	err = call(m.program, append(m.args, file)...)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = call("mount", "-o", "loop", file, dir)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(file))
	}
	return dir, func() error { return errors.Join(call("umount", dir), os.Remove(file)) }, nil
}

func (i *image) create(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(i.size()), f.Close())
}

func call(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// fillDisk mounts a small file system in memory on the folder and fills it but for
// half of what the fault writes. Its lift makes room again.
func fillDisk(dir string) (lift, unmount func() error, err error) {
	if os.Getuid() != 0 {
		return nil, nil, &unsupported{"only root can mount a disk to fill"}
	}
	if err := unix.Mount("files", dir, "tmpfs", 0, "size=32m"); err != nil {
		return nil, nil, &unsupported{fmt.Sprintf("no disk to fill can be mounted here: %v", err)}
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 20<<20), 0o600); err != nil {
		return nil, nil, errors.Join(err, unix.Unmount(dir, 0))
	}
	return func() error { return os.Remove(ballast) }, func() error { return unix.Unmount(dir, 0) }, nil
}
