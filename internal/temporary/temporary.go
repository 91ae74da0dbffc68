// Package temporary names temporary files, and removes those that killed calls have left.
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

// Prefix is how the names of temporary files begin. It hides them, and names this library
// to users who find one after a crash.
const Prefix = ".holdfast-"

// Name returns a name that probably no file has, and that no call knows again.
// It is not made of the name of the file to be replaced, which may be as long as a name
// can be.
func Name() sys.Name {
	var b [len(Prefix) + 14]byte
	name := strconv.AppendUint(append(b[:0], Prefix...), rand.Uint64(), 36)
	return sys.Name(append(name, 0))
}

// The digits of a KnownName: a random number, and the checksum of these digits. With the
// prefix that is 30 bytes, which the file systems with the shortest names take: minix.
const (
	randomDigits = 13
	sumDigits    = 7
)

// KnownName returns a name that probably no file has, and that the next call knows again:
// it is only given below a mark.
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

// sumOf is FNV-1a, by a loop: the one of package hash needs memory.
func sumOf(name []byte) uint64 {
	sum := uint32(2166136261)
	for _, c := range name[len(Prefix):] {
		sum = (sum ^ uint32(c)) * 16777619
	}
	return uint64(sum)
}

// appendDigits appends the last digits of a number, of base 36.
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

// isStale reports whether a file with the name of a temporary may be one that a killed call of this
// user has left. That is a regular file of one name that it may own.
func isStale(is sys.Stat, mayOwn func(uid uint32) bool) bool {
	return is.Mode&vfs.KindMask == vfs.KindRegular && is.Links == 1 && mayOwn(is.UID)
}

// RemoveStale removes a stale temporary. The caller holds the lock without which
// no call works on it.
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

// OpenToLock opens a directory once more, for a lock of its own. Every program may lock what
// it may read, so a call that does not get the lock does not wait. It takes names that
// no call knows again.
func OpenToLock(d vfs.Disk, dir int) (fd int, err error) {
	return d.OpenDirIn(dir, sys.Name(".\x00"))
}

// A Mark is the lock of a directory in which a Set makes temporaries of known names. All
// processes with such files there share it, as long as they have them. A process that holds
// it alone knows that every other such file is stale, and removes these first.
type Mark struct {
	key   keyed.Key
	users int // guarded by marks.mu

	mu     sync.Mutex
	fd     int  // -1: it is not open
	live   int  // temporaries
	swept  bool // all that was stale is removed
	locked bool
	never  bool // the directory can't be locked
}

type Marks struct {
	Disk    vfs.Disk
	Handles *handles.Cache
	Most    int

	mu    sync.Mutex
	All   []*Mark // the one that was made first is first
	swept map[keyed.Key]bool
}

// mostSwept bounds what is kept of directories that were swept. They are forgotten together.
const mostSwept = 1 << 14

// Take returns the mark of a directory for one temporary, until GiveBack; or nil: it can't be
// known again.
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
		_ = sys.Uninterrupted(func() error { return m.Disk.Unlock(k.fd) }) // else it stays locked with others
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

// use returns the mark of a directory, and another one that is to be closed for it.
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

// lock locks a directory for temporaries of known names. If it gets it alone first, it
// removes what is stale.
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

// sweepAtOnce is about how many names of a directory are read before a file is written there,
// which takes some milliseconds. The next one that finds the directory unlocked goes on.
const sweepAtOnce = 1 << 15

// sweep removes what is stale in a directory that is locked for this call alone. It reports
// whether it has read all names.
func (m *Marks) sweep(k *Mark) (over bool) {
	buf := make([]byte, 64<<10)
	var names []sys.DirEntry
	for read := 0; read < sweepAtOnce; read += len(names) {
		err := sys.Uninterrupted(func() (err error) {
			names, err = m.Disk.ReadNames(k.fd, buf, names[:0])
			return err
		})
		if err != nil || len(names) == 0 {
			return true // what can't be read now will not be later
		}
		for _, e := range names {
			if IsKnownName(e.Name) {
				_ = RemoveStale(m.Disk, k.fd, e.Name, mayOwnTemporary) // what can't be removed stays
			}
		}
	}
	return false
}

// mayOwnTemporary reports whether a temporary of this user's Files may belong to a user.
// Root gives them to the owners of the files that they are to replace.
func mayOwnTemporary(uid uint32) bool {
	self := os.Geteuid() // -1: the system has no such numbers
	return self <= 0 || uid == uint32(self)
}

func (m *Marks) close(k *Mark) {
	if k.fd >= 0 {
		m.Disk.Close(k.fd) // nothing was written to it
		m.Handles.Release()
	}
}

// CloseAll closes all marks. No other call may be under way.
func (m *Marks) CloseAll() {
	for _, k := range m.All {
		m.close(k)
	}
	m.All = nil
}
