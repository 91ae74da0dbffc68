package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A WorkDir is a fresh directory that belongs to the package alone. Only its owner may enter it, and
// every file in it has a name that was never used before. It is for one goroutine.
type WorkDir struct {
	// FileSystem is the type of the file system, or "unknown".
	FileSystem string

	// Second returns a second process of this program, not yet started, that does only
	// the work which args name. Nil: there is none. A study uses it to kill a writer, or to read while
	// another process writes.
	Second func(ctx context.Context, args ...string) *exec.Cmd

	// Remount unmounts the file system and mounts it again, so that nothing of it stays
	// in memory. No file on it is open then. Nil is [probe.Remount]. The caller that mounted it may
	// know a better way.
	Remount func() error

	// Kept is a directory on the same file system for the last trial's files of each named task; empty:
	// all files are removed.
	Kept string

	dir      string       // a path of it that can't be redirected
	held     *workdir.Dir // the directory, locked while the run is alive if the system has locks; nil: dir existed before and stays
	files    int
	observer *machine.Observer
}

// workDirPrefix begins the name of every work directory.
const workDirPrefix = "holdfast-bench-"

var (
	// ErrNotDir means that the given path is a file.
	ErrNotDir = errors.New("is a file, not a directory")

	// ErrMemoryOnly refuses a file system that keeps its files in memory, where
	// a sync does nothing and a power cut takes everything.
	ErrMemoryOnly = errors.New("keeps its files in memory: a sync does nothing there, and no policy survives a power cut")
)

// A RoomError means that a file system has too little room.
type RoomError struct {
	Dir        string
	Free, Need int64 // bytes
	Files      bool  // Free and Need are files, and not bytes
}

func (e *RoomError) Error() string {
	if e.Files {
		return fmt.Sprintf("%s has room for %s more files, and the plan makes %s", e.Dir, humanize.Grouped(e.Free), humanize.Grouped(e.Need))
	}
	return fmt.Sprintf("%s has %s free, and the plan needs %s at once", e.Dir, humanize.Bytes(e.Free), humanize.Bytes(e.Need))
}

// OpenWorkDir makes a fresh directory inside parent. If parent is in memory, it returns
// ErrMemoryOnly unless allowMemory is set. Close removes the directory.
func OpenWorkDir(parent string, allowMemory bool) (*WorkDir, error) {
	info, err := os.Stat(parent)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s %w", parent, ErrNotDir)
	}
	kind, err := sys.FileSystem(parent)
	if err != nil || kind == "" {
		kind = "unknown"
	}
	if inMemory := kind == "tmpfs" || kind == "ramfs"; inMemory && !allowMemory {
		return nil, fmt.Errorf("%s is on %s, which %w", parent, kind, ErrMemoryOnly)
	}
	g := &WorkDir{FileSystem: kind}
	if err := g.claim(parent); err != nil {
		return nil, err
	}
	g.observer = machine.Observe(g.dir)
	return g, nil
}

// claim makes the directory and locks it. Before it is locked, another process may take
// it for a killed run's; then claim makes another.
func (g *WorkDir) claim(parent string) (err error) {
	for range mostClaims {
		var held *workdir.Dir
		held, err = workdir.Make(parent, workDirPrefix+strconv.FormatUint(uint64(rand.Uint32()), 10))
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if isLocked(held) {
			g.held, g.dir = held, held.Path()
			return nil
		}
		_ = held.Remove() // best effort: another process may hold the lock only to inspect it
		_ = held.Close()
		err = ErrAlive
	}
	return err
}

// mostClaims bounds the directories that claim makes, since other processes may inspect each of them
// before it is locked.
const mostClaims = 1000

// OpenWhole uses an empty directory that is a file system of its own, for file systems such as bfs that
// have no other directories. Close empties the directory and leaves it.
func OpenWhole(dir string) (*WorkDir, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: %w", dir, fs.ErrExist)
	}
	kind, err := sys.FileSystem(dir)
	if err != nil || kind == "" {
		kind = "unknown"
	}
	return &WorkDir{FileSystem: kind, dir: filepath.Clean(dir), observer: machine.Observe(dir)}, nil
}

// Close removes the directory and everything in it.
func (g *WorkDir) Close() error {
	if g.held == nil {
		entries, err := os.ReadDir(g.dir)
		for _, e := range entries {
			err = errors.Join(err, os.RemoveAll(filepath.Join(g.dir, e.Name())))
		}
		return err
	}
	err := g.held.Empty()
	if err == nil {
		err = g.held.Remove()
	}
	if errors.Is(err, fs.ErrNotExist) { // it has been removed already
		err = nil
	}
	return errors.Join(err, g.held.Close())
}

// Dir returns the directory's path for display. Other users may be able to exchange it.
func (g *WorkDir) Dir() string {
	if g.held == nil {
		return g.dir
	}
	return g.held.Name()
}

// Inside returns a path of the directory that can't be redirected. Make files by it.
func (g *WorkDir) Inside() string { return g.dir }

// Name returns the directory's name in its parent.
func (g *WorkDir) Name() string { return filepath.Base(g.Dir()) }

// Free returns the number of free bytes on the file system, and whether the system reports it.
func (g *WorkDir) Free() (int64, bool) {
	free, err := sys.FreeSpace(g.dir)
	return free, err == nil
}

// Need returns a *RoomError if the file system has less than size bytes free.
// If the system does not report its free space, there is no error.
func (g *WorkDir) Need(size int64) error {
	free, err := sys.FreeSpace(g.dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("free space of %s: %w", g.Dir(), err)
	}
	if free < size {
		return &RoomError{Dir: filepath.Dir(g.Dir()), Free: free, Need: size}
	}
	return nil
}

// NeedFiles returns a *RoomError if the file system has room for fewer than n more files. If that is
// not known, or not fixed, there is no error.
func (g *WorkDir) NeedFiles(n int64) error {
	free, err := sys.FreeFiles(g.dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && free < n {
		err = &RoomError{Dir: filepath.Dir(g.Dir()), Free: free, Need: n, Files: true}
	}
	return err
}

// fresh returns a path in the directory that does not exist and was not used before.
func (g *WorkDir) fresh() (string, error) {
	g.files++
	path := filepath.Join(g.dir, strconv.Itoa(g.files))
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: %w in a directory that only this program should write to", path, fs.ErrExist)
	}
	return path, nil
}

// quiesce makes the file system finish the removal of the last file, so that the next
// trial's first sync does not pay for it. If a directory can't be synced, it does nothing.
func (g *WorkDir) quiesce() {
	d, err := os.Open(g.dir)
	if err != nil {
		return
	}
	_ = sys.SyncDir(d)
	_ = d.Close()
}
