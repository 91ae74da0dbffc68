//go:build go1.25

package provetest_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/provetest"
)

// A way is one in which a store of one value makes it durable. open returns the function that puts the nth value, which is the last
// that is there plus one, and the closer.
type way struct {
	name string
	// put returns how the store puts a value. A wrong store leaves out, or exchanges, what its kind needs.
	open func(dir string, wrong bool) (put func(n int) error, err error)
	// read returns the last value that is there; nil is of cells.
	read func(dir string) (int, error)
	// adopts says that what Open finds is acknowledged.
	adopts bool
	want   string // how the wrong store is found; "" is lost
}

const cellSize = 64

// cell is a value with its checksum.
func cell(n int) []byte {
	b := fmt.Appendf(nil, "%016d", n)
	b = fmt.Appendf(b, "%08x", crc32.ChecksumIEEE(b))
	return append(b, bytes.Repeat([]byte{'.'}, cellSize-len(b))...)
}

func ofCell(b []byte) int {
	n, err := strconv.Atoi(string(b[:min(16, len(b))]))
	if err != nil || !bytes.HasPrefix(b, cell(n)) {
		return 0
	}
	return n
}

// lastCell is the last value in a row from a file's beginning: value n is the nth cell.
func lastCell(name string) (n int, err error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	for ; (n+1)*cellSize <= len(b) && ofCell(b[n*cellSize:]) == n+1; n++ {
	}
	return n, err
}

func lastInLog(dir string) (int, error) { return lastCell(filepath.Join(dir, "log")) }

// opened opens the log by some flags. Its name is on the disk then.
func opened(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE|flags, 0o666)
	return f, errors.Join(err, syncDir(dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// cells is a way that writes one cell behind the other, and then does what makes it durable.
func cells(name string, flags int, right, wrong func(f *os.File, n int) error) way {
	return way{name: name, open: func(dir string, isWrong bool) (func(int) error, error) {
		step, flags := right, flags
		if isWrong {
			step = wrong
			flags &^= unix.O_DSYNC | unix.O_SYNC
		}
		f, err := opened(dir, flags)
		return func(n int) error { return step(f, n) }, err
	}}
}

func at(n int) int64 { return int64(n-1) * cellSize }

func write(f *os.File, n int) error {
	_, err := f.WriteAt(cell(n), at(n))
	return err
}

// do takes steps until one fails.
func do(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// replaced is a way that makes a new file of each value, by its name or for "value".
func replaced(name string, step func(dir string, n int, wrong bool) error) way {
	return way{name: name,
		open: func(dir string, wrong bool) (func(int) error, error) {
			// A kill may have left names that no sync has kept: what they hide must not be written over before.
			return func(n int) error { return step(dir, n, wrong) }, syncDir(dir)
		},
		read: func(dir string) (most int, err error) {
			entries, err := os.ReadDir(dir)
			for _, e := range entries {
				b, readErr := os.ReadFile(filepath.Join(dir, e.Name()))
				err = errors.Join(err, readErr)
				if !strings.HasPrefix(e.Name(), "tmp") {
					most = max(most, ofCell(b))
				}
			}
			return most, err
		}}
}

// newFile makes a file with a value.
func newFile(name string, n int, sync bool) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(cell(n))
	if sync {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

func ways() []way {
	type step = func(f *os.File, n int) error
	then := func(steps ...step) step {
		return func(f *os.File, n int) error {
			for _, s := range steps {
				if err := s(f, n); err != nil {
					return err
				}
			}
			return nil
		}
	}
	fsync := func(f *os.File, _ int) error { return f.Sync() }
	rwf := func(flags int) step {
		return func(f *os.File, n int) error {
			wrote, err := unix.Pwritev2(int(f.Fd()), [][]byte{cell(n)}, at(n), flags)
			if err == nil && wrote < cellSize {
				err = io.ErrShortWrite
			}
			return err
		}
	}
	mapped := func(flags int) step {
		return func(f *os.File, n int) error {
			size := (at(n) + cellSize + 4095) / 4096 * 4096
			if err := f.Truncate(size); err != nil {
				return err
			}
			m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			copy(m[at(n):], cell(n))
			return errors.Join(unix.Msync(m, flags), unix.Munmap(m))
		}
	}
	// moved brings a cell from another file by a call, which may move less.
	moved := func(call func(to, from *os.File, n int) (int, error)) step {
		return func(f *os.File, n int) error {
			tmp, err := os.CreateTemp(filepath.Dir(f.Name()), "tmp")
			if err != nil {
				return err
			}
			if _, err = tmp.Write(cell(n)); err == nil {
				var did int
				if did, err = call(f, tmp, n); err == nil && did < cellSize {
					err = io.ErrShortWrite
				}
			}
			return errors.Join(err, tmp.Close(), os.Remove(tmp.Name()))
		}
	}
	copied := moved(func(to, from *os.File, n int) (int, error) {
		zero, offset := int64(0), at(n)
		return unix.CopyFileRange(int(from.Fd()), &zero, int(to.Fd()), &offset, cellSize, 0)
	})
	sent := moved(func(to, from *os.File, n int) (int, error) {
		zero := int64(0)
		if _, err := to.Seek(at(n), 0); err != nil {
			return 0, err
		}
		return unix.Sendfile(int(to.Fd()), int(from.Fd()), &zero, cellSize)
	})
	spliced := func(f *os.File, n int) error {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		if _, err = w.Write(cell(n)); err == nil {
			offset := at(n)
			did, failed := unix.Splice(int(r.Fd()), nil, int(f.Fd()), &offset, cellSize, 0)
			if err = failed; err == nil && did < cellSize {
				err = io.ErrShortWrite
			}
		}
		return errors.Join(err, r.Close(), w.Close())
	}
	allocate := func(f *os.File, n int) error {
		return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, at(n), 1<<20)
	}
	return []way{
		cells("fsync", 0, then(write, fsync), write),
		cells("fdatasync", 0, then(write, func(f *os.File, _ int) error { return unix.Fdatasync(int(f.Fd())) }), then(fsync, write)),
		cells("O_DSYNC", unix.O_DSYNC, write, write),
		cells("O_SYNC", unix.O_SYNC, write, write),
		cells("RWF_DSYNC", 0, rwf(unix.RWF_DSYNC), rwf(0)),
		cells("RWF_SYNC", 0, rwf(unix.RWF_SYNC), rwf(0)),
		cells("msync", 0, mapped(unix.MS_SYNC), mapped(unix.MS_ASYNC)),
		cells("a mapping and fsync", 0, then(mapped(unix.MS_ASYNC), fsync), mapped(unix.MS_ASYNC)),
		cells("sync", 0, then(write, func(*os.File, int) error { unix.Sync(); return nil }), write),
		cells("syncfs", 0, then(write, func(f *os.File, _ int) error { return unix.Syncfs(int(f.Fd())) }), then(write, func(f *os.File, n int) error {
			const whole = 7 // SYNC_FILE_RANGE_WAIT_BEFORE, WRITE, WAIT_AFTER
			return unix.SyncFileRange(int(f.Fd()), at(n), cellSize, whole)
		})),
		cells("copy_file_range", 0, then(copied, fsync), copied),
		cells("sendfile", 0, then(sent, fsync), sent),
		cells("splice", 0, then(spliced, fsync), spliced),
		cells("fallocate", 0, then(allocate, write, fsync), then(write, allocate)),
		// The old value must not go before the new one is on the disk.
		{name: "punched hole", open: func(dir string, wrong bool) (func(int) error, error) {
			f, err := opened(dir, 0)
			const page = 4096
			return func(n int) error {
				return do(
					func() error { _, err := f.WriteAt(cell(n), int64((n+1)%2)*page); return err },
					func() error {
						if wrong {
							return nil
						}
						return f.Sync()
					},
					func() error {
						return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(n%2)*page, page)
					}, f.Sync)
			}, err
		}, read: func(dir string) (int, error) {
			b, err := os.ReadFile(filepath.Join(dir, "log"))
			if errors.Is(err, os.ErrNotExist) {
				return 0, nil
			}
			b = append(b, make([]byte, 8192)...)
			return max(ofCell(b), ofCell(b[4096:])), err
		}},
		replaced("rename", func(dir string, n int, wrong bool) error {
			tmp := filepath.Join(dir, "tmp")
			return do(
				func() error { return newFile(tmp, n, true) },
				func() error { return os.Rename(tmp, filepath.Join(dir, "value")) },
				func() error { return syncDirUnless(wrong, dir) })
		}),
		replaced("rename without bytes", func(dir string, n int, wrong bool) error {
			tmp := filepath.Join(dir, "tmp")
			return do(
				func() error { return newFile(tmp, n, !wrong) },
				func() error { return os.Rename(tmp, filepath.Join(dir, "value")) },
				func() error { return syncDir(dir) })
		}),
		replaced("renameat2", func(dir string, n int, wrong bool) error {
			tmp, value := filepath.Join(dir, "tmp"), filepath.Join(dir, "value")
			if _, err := os.Stat(value); err != nil {
				if err := do(func() error { return newFile(value, 0, true) }, func() error { return syncDir(dir) }); err != nil {
					return err
				}
			}
			return do(
				func() error { return newFile(tmp, n, true) },
				func() error { return unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, value, unix.RENAME_EXCHANGE) },
				func() error { return syncDirUnless(wrong, dir) })
		}),
		replaced("hard link", func(dir string, n int, wrong bool) error {
			tmp, value := filepath.Join(dir, "tmp"), filepath.Join(dir, fmt.Sprint("v", n))
			return do(
				func() error { return newFile(tmp, n, true) },
				func() error { return os.Link(tmp, value) },
				func() error { return os.Remove(tmp) },
				func() error { return syncDirUnless(wrong, dir) },
				func() error { return forget(dir, n) })
		}),
		replaced("O_TMPFILE", func(dir string, n int, wrong bool) error {
			fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY, 0o666)
			if err != nil {
				return err
			}
			f := os.NewFile(uintptr(fd), "tmpfile")
			return errors.Join(do(
				func() error { _, err := f.Write(cell(n)); return err },
				func() error {
					if wrong {
						return nil
					}
					return f.Sync()
				},
				func() error {
					return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, filepath.Join(dir, fmt.Sprint("v", n)), unix.AT_SYMLINK_FOLLOW)
				},
				func() error { return syncDir(dir) },
				func() error { return forget(dir, n) }), f.Close())
		}),
		{name: "symbolic link", open: func(dir string, wrong bool) (func(int) error, error) {
			return func(n int) error {
				tmp, value := filepath.Join(dir, "tmp"), fmt.Sprint("v", n)
				if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
				return do(
					func() error { return newFile(filepath.Join(dir, value), n, true) },
					func() error { return os.Symlink(value, tmp) },
					func() error { return os.Rename(tmp, filepath.Join(dir, "value")) },
					func() error { return syncDirUnless(wrong, dir) },
					func() error { return forget(dir, n) })
			}, syncDir(dir)
		}, read: func(dir string) (int, error) {
			b, err := os.ReadFile(filepath.Join(dir, "value"))
			if _, none := os.Readlink(filepath.Join(dir, "value")); errors.Is(none, os.ErrNotExist) {
				return 0, nil
			}
			return ofCell(b), err
		}},
		{name: "through a symbolic link", open: func(dir string, wrong bool) (func(int) error, error) {
			link := filepath.Join(dir, "link")
			err := os.MkdirAll(filepath.Join(dir, "to"), 0o777)
			if _, none := os.Readlink(link); err == nil && none != nil {
				err = os.Symlink(filepath.Join(dir, "to"), link)
			}
			return func(n int) error {
				return do(
					func() error { return newFile(filepath.Join(link, "tmp"), n, true) },
					func() error { return os.Rename(filepath.Join(link, "tmp"), filepath.Join(link, "value")) },
					func() error { return syncDirUnless(wrong, link) })
			}, errors.Join(err, syncDir(dir), syncDir(filepath.Join(dir, "to")))
		}, read: func(dir string) (int, error) {
			b, err := os.ReadFile(filepath.Join(dir, "link", "value"))
			if errors.Is(err, os.ErrNotExist) {
				err = nil
			}
			return ofCell(append(b, make([]byte, 16)...)), err
		}},
		// The wrong one has its count in one page, its records in others, and one sync for both.
		{name: "count and record", open: func(dir string, wrong bool) (func(int) error, error) {
			f, err := opened(dir, 0)
			return func(n int) error {
				return do(
					func() error { _, err := f.WriteAt(cell(n), 4096+at(n)); return err },
					func() error {
						if wrong {
							return nil
						}
						return f.Sync()
					},
					func() error { _, err := f.WriteAt(cell(n), 0); return err }, f.Sync)
			}, err
		}, read: func(dir string) (int, error) {
			b, err := os.ReadFile(filepath.Join(dir, "log"))
			if errors.Is(err, os.ErrNotExist) || len(b) == 0 {
				return 0, nil
			}
			n := ofCell(b)
			if n == 0 { // there is no count yet
				return 0, err
			}
			if b = append(b, make([]byte, 1<<20)...); ofCell(b[4096+at(n):]) != n {
				return 0, errors.New("the count is of a record that is not there")
			}
			return n, err
		}, want: "unread"},
		// The wrong one takes for durable what it finds, as if each end were a power cut.
		{name: "found is kept", adopts: true, open: func(dir string, wrong bool) (func(int) error, error) {
			f, err := opened(dir, 0)
			if err == nil && !wrong {
				err = f.Sync()
			}
			return func(n int) error {
				if err := write(f, n); err != nil {
					return err
				}
				if n%4 != 0 {
					return errLater
				}
				return f.Sync()
			}, err
		}},
	}
}

func syncDirUnless(not bool, dir string) error {
	if not {
		return nil
	}
	return syncDir(dir)
}

// errLater says that a value is not durable yet.
var errLater = errors.New("not yet durable")

// forget removes the files of old values.
func forget(dir string, n int) error {
	if n < 3 {
		return nil
	}
	if err := os.Remove(filepath.Join(dir, fmt.Sprint("v", n-2))); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// storing is a workload of a way.
func storing(w way, wrong bool) provetest.Workload {
	last := w.read
	if last == nil {
		last = lastInLog
	}
	return provetest.Workload{
		Write: func(dir string, log *provetest.Log) error {
			put, err := w.open(dir, wrong)
			n, readErr := last(dir)
			if err = errors.Join(err, readErr); err != nil {
				return err
			}
			if w.adopts && n > 0 {
				log.Ack("k", strconv.Itoa(n))
			}
			for n++; ; n++ {
				log.Begin("k", strconv.Itoa(n))
				if err := put(n); err == nil {
					log.Ack("k", strconv.Itoa(n))
				} else if !errors.Is(err, errLater) {
					return err
				}
				time.Sleep(20 * time.Microsecond)
			}
		},
		Read: func(dir string) (map[string]string, error) {
			n, err := last(dir)
			if n == 0 {
				return nil, err
			}
			return map[string]string{"k": strconv.Itoa(n)}, err
		},
		Synced: true,
		Time:   60 * time.Millisecond,
	}
}

// TestEachWayToSyncIsKnown has a correct store of each way to make a value durable, which no level accuses, and a wrong one, which level power finds.
func TestEachWayToSyncIsKnown(t *testing.T) {
	isolate.Once(t)
	if isolate.RaceEnabled {
		t.Skip("the example runs under the race detector")
	}
	chance := rand.IntN(4) // a fault needs many processes: each run has some stores under it
	for i, w := range ways() {
		name := strings.ReplaceAll(w.name, " ", "-")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, level := range []string{"kill", "power", "fault"} {
				if level == "fault" && i%4 != chance {
					continue
				}
				if rule, words := provetest.Find(t, storing(w, false), level); rule != "" {
					t.Errorf("level %s: %s: %s", level, rule, words)
				}
			}
		})
		t.Run("wrong-"+name, func(t *testing.T) {
			t.Parallel()
			wrong := storing(w, true)
			wrong.Time *= 1000 // it ends with the first that is found: seconds, where it takes two processes and a cut
			rule, words := provetest.Find(t, wrong, "power")
			if rule != cmp.Or(w.want, "lost") {
				t.Errorf("%q: %s", rule, words)
			}
			if _, kept, _ := strings.Cut(words, "its files are in "); kept != "" && os.RemoveAll(kept) != nil {
				t.Errorf("%s can't be removed", kept)
			}
		})
	}
}
