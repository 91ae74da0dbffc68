package powercut

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/rotate"
)

// appended are records that holdfast says are durable. They are in the block whose first write the disk has refused.
const appended = "holdfast says that it is durable\n"

// An appending is one way to write to a file that exists.
type appending struct {
	name string
	do   func(path string) error
}

var appendings = []appending{
	{"holdfast.Append", func(path string) error {
		return byWriter(holdfast.Append(path, holdfast.Durable()))
	}},
	{"holdfast.Append, sync=never", func(path string) error {
		return byWriter(holdfast.Append(path, holdfast.Unbuffered()))
	}},
	{"holdfast.OpenFile over the same bytes", func(path string) error {
		return byWriter(holdfast.OpenFile(path, os.O_RDWR, 0, holdfast.EachDurable()))
	}},
	{"holdfast.New", func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		return byWriter(holdfast.New(f, holdfast.Durable()))
	}},
	{"holdfast.Append on an overlay", func(path string) error {
		lower, upper, work, all := path+".lower", path+".upper", path+".work", path+".all"
		file := filepath.Join(upper, "file")
		err := errors.Join(os.Mkdir(lower, 0o700), os.Mkdir(upper, 0o700), os.Mkdir(work, 0o700), os.Mkdir(all, 0o700), os.Rename(path, file))
		if err == nil {
			err = unix.Mount("overlay", all, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+",workdir="+work)
		}
		if errors.Is(err, unix.ENODEV) { // this kernel has none
			return errors.Join(os.Rename(file, path), byWriter(holdfast.Append(path, holdfast.Durable())))
		}
		if err != nil {
			return err
		}
		err = byWriter(holdfast.Append(filepath.Join(all, "file"), holdfast.Durable()))
		return errors.Join(err, unix.Unmount(all, 0), os.Rename(file, path))
	}},
	{"rotate", rotated(rotate.Options{Policy: holdfast.Durable()})},
	{"rotate, shared", rotated(rotate.Options{Policy: holdfast.Durable(), Shared: true})},
	{"files.Append", inSet(holdfast.Durable(), func(s *files.Set, path string) error {
		return s.Append(context.Background(), path, []byte(appended))
	})},
	{"files.Append, synced by the Set's Close", inSet(holdfast.Policy{Buffer: 4 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, func(s *files.Set, path string) error {
		return s.Append(context.Background(), path, []byte(appended))
	})},
	{"files.WriteAll, Append", inSet(holdfast.Durable(), func(s *files.Set, path string) error {
		_, err := s.WriteAll(context.Background(), func(yield func(files.Write) bool) {
			yield(files.Write{Path: path, Data: []byte(appended), Mode: files.Append})
		})
		return err
	})},
	{"files, over a mount point", inSet(holdfast.Durable(), func(s *files.Set, path string) error {
		if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		_, err := s.WriteAll(context.Background(), func(yield func(files.Write) bool) {
			yield(files.Write{Path: path, Data: []byte(appended), Mode: files.Replace})
		})
		return errors.Join(err, unix.Unmount(path, unix.MNT_DETACH))
	})},
}

// byWriter writes the record by a Writer. When it returns, the record is durable.
func byWriter(w *holdfast.Writer, err error) error {
	if err == nil {
		_, err = w.Write([]byte(appended))
	}
	if err == nil {
		err = w.Sync()
	}
	if w != nil {
		err = errors.Join(err, w.Close())
	}
	return err
}

func rotated(o rotate.Options) func(path string) error {
	return func(path string) error {
		f, err := rotate.Open(path, o)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte(appended))
		return errors.Join(err, f.Close())
	}
}

func inSet(p holdfast.Policy, write func(s *files.Set, path string) error) func(path string) error {
	return func(path string) error {
		s, err := files.New(files.Options{Policy: p, Effort: holdfast.Best})
		if err != nil {
			return err
		}
		return errors.Join(write(s, path), s.Close())
	}
}

// TestAppendedBehindAFailedSyncIsDurable lets the disk refuse the first write of a file's last block, as a process before would have seen.
// Then holdfast writes to that block and says that it is durable. After a remount it is there.
func TestAppendedBehindAFailedSyncIsDurable(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ext4", "ext4-nojournal", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			needs(t, kind)
			mounts, err := os.Open("/proc/self/ns/mnt")
			if err != nil {
				t.Fatal(err)
			}
			defer mounts.Close()
			cmd := childAs("appended")(t.Context(), t.TempDir(), kind)
			cmd.ExtraFiles = []*os.File{mounts, mounts, mounts} // mountsFD is the last
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: syscall.CLONE_NEWNS}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// appendedThere is the process of that test, with mounts of its own.
func appendedThere() error {
	dir, kind := os.Args[1], os.Args[2]
	k, err := kindOf(kind)
	if err != nil {
		return err
	}
	r := &room{top: filepath.Join(dir, "top"), child: childAs("process")}
	c := &cell{kind: k, dir: filepath.Join(r.top, "cell"), owner: fmt.Sprintf("holdfast-appended:%d", os.Getpid())}
	if err := errors.Join(os.Mkdir(r.top, 0o700), r.private()); err != nil {
		return err
	}
	// A write of many pages has them in one piece of the page cache, and what another program adds is a dirty page.
	files := []struct {
		how   string
		pages int    // before the refused block
		more  string // another program adds it
		syncs bool   // and syncs
	}{{"one block", 0, "", false}, {"many blocks", 16, "", false}, {"one block, and more in it", 0, "not synced\n", false},
		{"one block, and a good one behind it", 0, string(block("new")), true}}
	each := func(do func(name string, i, j int) error) (err error) {
		for i, a := range appendings {
			for j, f := range files {
				if failed := do(fmt.Sprintf("file%d-%d", i, j), i, j); failed != nil {
					err = errors.Join(err, fmt.Errorf("%s, %s: %w", a.name, f.how, failed))
				}
			}
		}
		return err
	}
	write := func(dir string, _ *disk) error {
		return each(func(name string, i, j int) error {
			path := filepath.Join(dir, name)
			letter := string(rune('0' + i*len(files) + j))
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				return err
			}
			lost := append(bytes.Repeat(block("old"), files[j].pages), refused+letter+"\n"...)
			if _, err := f.Write(lost); err != nil {
				return err
			}
			if err := f.Sync(); !errors.Is(err, syscall.EIO) {
				return fmt.Errorf("the sync of a write that the disk refuses: %w", err)
			}
			if _, err := f.WriteString(files[j].more); err != nil {
				return err
			}
			if files[j].syncs {
				if err := f.Sync(); err != nil {
					return err
				}
			}
			return errors.Join(f.Close(), appendings[i].do(path))
		})
	}
	read := func(dir string) error {
		return each(func(name string, _, _ int) error {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil && strings.Count(string(text), appended) != 1 {
				err = fmt.Errorf("it is lost: the file has %d bytes and ends in %q", len(text), text[max(0, len(text)-len(appended)):])
			}
			return err
		})
	}
	return r.shown(c, refusesWrites, write, read)
}
