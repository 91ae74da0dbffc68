package sys

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	fromCachestat = "cachestat(2)"
	fromMincore   = "mincore(2)"
)

// PageCache returns the number of pages of a regular file in the page cache now: by cachestat(2),
// Linux 6.5, else by mincore(2). It reads no page in. The kernel may drop or read pages at any time
// after it.
//
// Both calls work only for the file's owner and for users who may write it (mincore since Linux
// 5.2, cachestat since 6.13). Others get an error. f must be open for reading.
//
// Note: it does not count the cache of a lower file system, such as of the image under a loop
// device.
func PageCache(f *os.File) (Residency, error) {
	info, err := f.Stat()
	if err != nil {
		return Residency{}, fmt.Errorf("page cache is not known: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Residency{}, fmt.Errorf("page cache is not known: %s is not a regular file", f.Name())
	}
	var r Residency
	err = OnDescriptor(f, func(fd int) error {
		var err error
		r, err = residency(fd, info.Size())
		return err
	})
	if err != nil {
		return Residency{}, fmt.Errorf("page cache of %s is not known: %w", f.Name(), err)
	}
	return r, nil
}

// residency tries cachestat first. On overlayfs the pages belong to the lower file, and cachestat
// looks at the overlay, which has none; mincore looks at the right pages (ovl_mmap in Linux's
// fs/overlayfs/file.c). A seccomp filter that doesn't know cachestat returns EPERM.
func residency(fd int, size int64) (Residency, error) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(fd, &stat); err != nil {
		return Residency{}, fmt.Errorf("fstatfs: %w", err)
	}
	if int64(uint32(stat.Type)) == unix.OVERLAYFS_SUPER_MAGIC {
		return byMincore(fd, size)
	}
	r, err := byCachestat(fd, size)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) {
		return byMincore(fd, size)
	}
	return r, err
}

// OnDescriptor calls do with f's descriptor, which stays open until do returns.
func OnDescriptor(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// pagesOf returns the number of pages of size bytes.
func pagesOf(size int64) int64 {
	page := int64(os.Getpagesize())
	return size/page + min(size%page, 1)
}

// byCachestat asks for the file's own bytes. A length of 0 would mean all, including the pages of a
// large folio after the end of the file.
func byCachestat(fd int, size int64) (Residency, error) {
	r := Residency{Pages: pagesOf(size), Source: fromCachestat}
	if size == 0 {
		return r, nil
	}
	var stat unix.Cachestat_t
	if err := unix.Cachestat(uint(fd), &unix.CachestatRange{Len: uint64(size)}, &stat, 0); err != nil {
		return Residency{}, fmt.Errorf("cachestat: %w", err)
	}
	r.Resident = int64(stat.Cache)
	return r, nil
}

// mincoreWindow bounds the bytes mapped at a time, and so the vector of one byte per page. It is a
// multiple of every page size.
const mincoreWindow = 1 << 30

// byMincore maps the file without touching it.
func byMincore(fd int, size int64) (Residency, error) {
	if err := mayAskMincore(fd); err != nil {
		return Residency{}, err
	}
	r := Residency{Pages: pagesOf(size), Source: fromMincore}
	for offset := int64(0); offset < size; offset += mincoreWindow {
		n, err := mincore(fd, offset, int(min(size-offset, mincoreWindow)))
		if err != nil {
			return Residency{}, err
		}
		r.Resident += n
	}
	return r, nil
}

// mayAskMincore is the kernel's own condition (can_do_mincore in mm/mincore.c):
// where it doesn't hold, mincore calls every page resident.
func mayAskMincore(fd int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("fstat: %w", err)
	}
	if euid := os.Geteuid(); euid == 0 || euid == int(stat.Uid) {
		return nil
	}
	if err := unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.W_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("the kernel reports it only to the file's owner and to users who may write it: %w", err)
	}
	return nil
}

// mincore counts the resident pages of a part of a file.
func mincore(fd int, offset int64, length int) (resident int64, err error) {
	mapped, err := unix.Mmap(fd, offset, length, unix.PROT_NONE, unix.MAP_SHARED)
	if errors.Is(err, unix.EACCES) {
		return 0, fmt.Errorf("mmap: %w; open the file for reading too", err)
	}
	if err != nil {
		return 0, fmt.Errorf("mmap: %w", err)
	}
	defer unix.Munmap(mapped)
	pages := make([]byte, pagesOf(int64(length)))
	if err := mincoreVector(mapped, pages); err != nil {
		return 0, fmt.Errorf("mincore: %w", err)
	}
	for _, p := range pages {
		resident += int64(p & 1) // the other bits are reserved: mincore(2)
	}
	return resident, nil
}

// mincoreVector is mincore(2): pages has a byte for each page of mapped.
func mincoreVector(mapped, pages []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(mapped))),
		uintptr(len(mapped)), uintptr(unsafe.Pointer(unsafe.SliceData(pages))))
	if errno != 0 {
		return errno
	}
	return nil
}
