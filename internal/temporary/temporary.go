// Package temporary names temporary files, and removes the ones that killed calls have left.
package temporary

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// Prefix begins the names of temporary files. It hides them, and names this library to users who
// find one after a crash.
const Prefix = ".holdfast-"

// Name returns a random name that later calls do not recognize. It does not contain the name of the
// file to be replaced, which may already have the greatest length.
func Name() sys.Name {
	var b [len(Prefix) + 14]byte
	name := strconv.AppendUint(append(b[:0], Prefix...), rand.Uint64(), 36)
	return sys.Name(append(name, 0))
}

// The digits of a KnownName: a random number, and a checksum of it. With the prefix it has 30
// bytes, which minix takes, the file system with the shortest names.
const (
	randomDigits = 13
	sumDigits    = 7
)

// KnownName returns a random name that later calls recognize. It is used only in a directory with a
// Mark.
func KnownName() sys.Name {
	var b [len(Prefix) + randomDigits + sumDigits + 1]byte
	name := appendDigits(append(b[:0], Prefix...), rand.Uint64(), randomDigits)
	name = appendDigits(name, sumOf(name), sumDigits)
	return sys.Name(append(name, 0))
}

func IsKnownName(name sys.Name) bool {
	const random = len(Prefix) + randomDigits
	if len(name) != random+sumDigits+1 || name[:len(Prefix)] != Prefix {
		return false
	}
	var b [random + sumDigits]byte
	copy(b[:], name)
	return string(appendDigits(b[:random], sumOf(b[:random]), sumDigits)) == string(name[:len(b)])
}

// sumOf is FNV-1a. It does not use package hash, which allocates.
func sumOf(name []byte) uint64 {
	sum := uint32(2166136261)
	for _, c := range name[len(Prefix):] {
		sum = (sum ^ uint32(c)) * 16777619
	}
	return uint64(sum)
}

// appendDigits appends a number in base 36, with the given number of digits.
func appendDigits(b []byte, n uint64, digits int) []byte {
	const of = "0123456789abcdefghijklmnopqrstuvwxyz"
	at := len(b)
	for range digits {
		b = append(b, 0)
	}
	for i := len(b) - 1; i >= at; i-- {
		b[i], n = of[n%36], n/36
	}
	return b
}

// isStale reports whether a file with a temporary name may be left by a killed call of this user:
// it is regular, has one name, and an owner permitted by mayOwn.
func isStale(is sys.Stat, mayOwn func(uid uint32) bool) bool {
	return is.Mode&vfs.KindMask == vfs.KindRegular && is.Links == 1 && mayOwn(is.UID)
}

// RemoveStale removes a stale temporary file. The caller holds the lock that every user of such
// files needs.
func RemoveStale(d vfs.Disk, dir int, name sys.Name, mayOwn func(uid uint32) bool) error {
	var is sys.Stat
	err := sys.Uninterrupted(func() (err error) {
		is, err = d.Stat(dir, name)
		return err
	})
	if err == nil && !isStale(is, mayOwn) {
		err = fs.ErrExist
	}
	if err != nil {
		return err
	}
	return sys.Uninterrupted(func() error { return d.Remove(dir, name) })
}

// OpenToLock opens a directory once more, for a lock of its own. Every program may lock a directory
// that it may read, so a call that does not get the lock does not wait. It uses names that later
// calls do not recognize.
func OpenToLock(d vfs.Disk, dir int) (fd int, err error) {
	return d.OpenDirIn(dir, sys.Name(".\x00"))
}

// A Mark is the lock of a directory in which a Set makes files with KnownNames. All processes with
// such files there hold it shared. A process that holds it alone knows that every other such file
// is stale, and removes these first.
type Mark struct {
	key   keyed.Key
	users int // guarded by marks.mu

	mu     sync.Mutex
	fd     int  // -1: not open
	live   int  // temporary files in use
	swept  bool // all stale files were removed
	locked bool
	never  bool // the directory can't be locked
}

type Marks struct {
	Disk    vfs.Disk
	Handles *handles.Cache
	Most    int

	mu    sync.Mutex
	All   []*Mark // in the order in which they were made
	swept map[keyed.Key]bool
}

// mostSwept bounds the record of swept directories, which is cleared as a whole.
const mostSwept = 1 << 14

// Take returns the mark of a directory for one temporary file, until GiveBack; or nil if none is
// possible.
func (m *Marks) Take(d *handles.Dir) *Mark {
	k, old := m.use(d.Key())
	if old != nil {
		m.close(old)
	}
	if k == nil {
		return nil
	}
	k.mu.Lock()
	locked := k.locked || m.lock(k, d.Fd)
	if locked {
		k.live++
	}
	k.mu.Unlock()
	if !locked {
		m.rest(k)
		return nil
	}
	return k
}

func (m *Marks) GiveBack(k *Mark) {
	if k == nil {
		return
	}
	k.mu.Lock()
	if k.live--; k.live == 0 {
		_ = sys.Uninterrupted(func() error { return m.Disk.Unlock(k.fd) }) // on an error it stays locked as shared
		k.locked = false
	}
	k.mu.Unlock()
	m.rest(k)
}

func (m *Marks) rest(k *Mark) {
	m.mu.Lock()
	k.users--
	m.mu.Unlock()
}

// use returns the mark of a directory, and another one to be closed for it.
func (m *Marks) use(key keyed.Key) (k, old *Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key.Inode == 0 {
		return nil, nil
	}
	for _, k := range m.All {
		if k.key == key {
			k.users++
			return k, nil
		}
	}
	if len(m.All) == m.Most {
		for i, x := range m.All {
			if x.users == 0 {
				old = x
				m.All = append(m.All[:i], m.All[i+1:]...)
				break
			}
		}
		if old == nil {
			return nil, nil
		}
	}
	k = &Mark{key: key, users: 1, fd: -1, swept: m.swept[key]}
	m.All = append(m.All, k)
	return k, old
}

// lock locks a directory for temporary files with KnownNames. If it gets the lock alone first, it
// removes stale files.
func (m *Marks) lock(k *Mark, dir int) bool {
	if k.never {
		return false
	}
	if k.fd < 0 {
		m.Handles.Reserve()
		fd, err := OpenToLock(m.Disk, dir)
		if err != nil {
			m.Handles.Release()
			return false
		}
		k.fd = fd
	}
	if !k.swept && sys.Uninterrupted(func() error { return m.Disk.Lock(k.fd) }) == nil && m.sweep(k) {
		k.swept = true
		m.mu.Lock()
		if m.swept == nil || len(m.swept) >= mostSwept {
			m.swept = map[keyed.Key]bool{}
		}
		m.swept[k.key] = true
		m.mu.Unlock()
	}
	err := sys.Uninterrupted(func() error { return m.Disk.LockShared(k.fd) })
	k.locked = err == nil
	k.never = err != nil && !errors.Is(err, syscall.EAGAIN)
	return k.locked
}

// sweepAtOnce is about the number of names read in a directory before a file is written there,
// which takes some milliseconds. The next call that finds the directory unlocked continues.
const sweepAtOnce = 1 << 15

// sweep removes stale files in a directory that is locked by this call alone. It reports whether it
// has read all names.
func (m *Marks) sweep(k *Mark) (over bool) {
	buf := make([]byte, 64<<10)
	var names []sys.DirEntry
	for read := 0; read < sweepAtOnce; read += len(names) {
		err := sys.Uninterrupted(func() (err error) {
			names, err = m.Disk.ReadNames(k.fd, buf, names[:0])
			return err
		})
		if err != nil || len(names) == 0 {
			return true // an unreadable directory will stay so
		}
		for _, e := range names {
			if IsKnownName(e.Name) {
				_ = RemoveStale(m.Disk, k.fd, e.Name, mayOwnTemporary) // a file that can't be removed stays
			}
		}
	}
	return false
}

// mayOwnTemporary reports whether a user may own a temporary file of this user's Sets. Root gives
// them to the owners of the files that they replace.
func mayOwnTemporary(uid uint32) bool {
	self := os.Geteuid() // -1: the system has no user numbers
	return self <= 0 || uid == uint32(self)
}

func (m *Marks) close(k *Mark) {
	if k.fd >= 0 {
		m.Disk.Close(k.fd) // nothing was written to it
		m.Handles.Release()
	}
}

// CloseAll closes all marks. No other call may run.
func (m *Marks) CloseAll() {
	for _, k := range m.All {
		m.close(k)
	}
	m.All = nil
}
