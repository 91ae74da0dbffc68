package uml

import (
	"errors"
	"io"
	"os"
	"path"

	"github.com/cavaliergopher/cpio"
)

// Where things are in the guest.
const (
	initPath    = "/init"
	orderPath   = "/order.json"
	libraryPath = "/lib" // of the shared libraries, and LD_LIBRARY_PATH
	modulePath  = "/modules"
)

// A packed file is one that goes into the guest's first root: from a file here, or
// of the bytes given.
type packed struct {
	path string // absolute, in the guest
	mode int64
	from string
	text []byte
}

// writeInitramfs makes the archive of a first root, in a new file.
func writeInitramfs(name string, files []packed) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(pack(f, files), f.Close())
}

// pack writes the archive, each directory before what is in it. The form is newc of
// cpio: see the kernel's initramfs-buffer-format.rst. It is not compressed: the kernel
// reads it once, from the page cache.
func pack(w io.Writer, files []packed) error {
	archive := cpio.NewWriter(w)
	made := map[string]bool{"/": true}
	for _, file := range files {
		if err := packDirs(archive, path.Dir(file.path), made); err != nil {
			return err
		}
		if err := packFile(archive, file); err != nil {
			return err
		}
	}
	return archive.Close()
}

func packDirs(archive *cpio.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := packDirs(archive, path.Dir(dir), made); err != nil {
		return err
	}
	return archive.WriteHeader(&cpio.Header{Name: dir[1:], Mode: cpio.TypeDir | 0o755, Links: 2})
}

func packFile(archive *cpio.Writer, file packed) error {
	size, from := int64(len(file.text)), io.Reader(nil)
	if file.from != "" {
		f, err := os.Open(file.from)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		size, from = info.Size(), f
	}
	h := &cpio.Header{Name: file.path[1:], Mode: cpio.TypeReg | cpio.FileMode(file.mode), Links: 1, Size: size}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	if from == nil {
		_, err := archive.Write(file.text)
		return err
	}
	_, err := io.CopyN(archive, from, size)
	return err
}
