package files

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// An addedFile is a second descriptor of the open file that a program has given to Add: what failed of
// its bytes is told to either.
type addedFile struct {
	fd     int
	device uint64
	result *record
}

func deviceOf(is os.FileInfo) uint64 { return uint64(is.Sys().(*syscall.Stat_t).Dev) }

// sync begins to sync a file, with others if together says that their file system can be synced, and
// returns when its Close waits for that.
func (b *Batch) sync(file *os.File, r *record, together bool) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	if together {
		x := addedFile{result: r}
		var is unix.Stat_t
		var failed error
		if err := raw.Control(func(fd uintptr) {
			if failed = unix.Fstat(int(fd), &is); failed == nil {
				x.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
			}
		}); err != nil {
			return err
		}
		if failed == nil {
			x.device = uint64(is.Dev)
			b.mu.Lock()
			b.added = append(b.added, x)
			b.mu.Unlock()
			b.syncAdded(b.takeAdded(max(1, b.set.options.Handles/2)))
			return nil
		} // no descriptor is left: it is synced by its own
	}
	b.turns <- struct{}{}
	b.syncs.Add(1)
	begun := make(chan error, 1)
	go func() {
		defer b.syncs.Done()
		defer func() { <-b.turns }()
		var failed error
		err := raw.Control(func(fd uintptr) {
			begun <- nil
			b.set.whole.syncs.Add(1)
			defer b.set.watchSync(r.path)()
			failed = sys.Disk{}.Sync(int(fd))
		})
		if err != nil {
			begun <- err
		}
		b.synced(r, failed)
	}()
	return <-begun
}

// takeAdded returns the files that await a sync if there are enough.
func (b *Batch) takeAdded(enough int) (added []addedFile) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.added) >= enough {
		added, b.added = b.added, nil
	}
	return added
}

// syncAdded syncs files and closes them.
func (b *Batch) syncAdded(added []addedFile) {
	disk := sys.Disk{}
	for len(added) > 0 {
		same := added[:0:0] // of one file system
		var others []addedFile
		for _, x := range added {
			if x.device == added[0].device {
				same = append(same, x)
			} else {
				others = append(others, x)
			}
		}
		// See Disk.SyncAll: the sync of one of the files is a part of it. A failed sync of the file system
		// may be of another's file: then each is synced.
		whole := durable.WorthIt(b.set.disk, len(same))
		if whole {
			b.set.whole.syncs.Add(1)
			end := b.set.watchSync("")
			whole = unix.Syncfs(same[0].fd) == nil
			end()
		}
		durable.Abreast(durable.Waiters, len(same), func(i int) {
			x := same[i]
			err := errors.ErrUnsupported
			if whole && i > 0 {
				err = disk.WriteError(x.fd)
			}
			if errors.Is(err, errors.ErrUnsupported) || err == unix.EPERM { // or a filter refuses that call
				b.set.whole.syncs.Add(1)
				end := b.set.watchSync(x.result.path)
				err = disk.Sync(x.fd)
				end()
			}
			b.synced(x.result, err)
			disk.Close(x.fd) // the program's own close reports what is left
		})
		added = others
	}
}
