package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/dustin/go-humanize"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Ground is a fresh folder that is all the package's own: only its owner may
// enter it, and every file in it has a name that was never used before. It is
// for one goroutine.
type Ground struct {
	// FileSystem is the type of the file system, or "unknown".
	FileSystem string

	// Second returns a second process of this program, not yet started, that does
	// the work which args name and nothing else; nil where there can be none. A
	// study uses it to kill a writer, or to read while another process writes.
	Second func(ctx context.Context, args ...string) *exec.Cmd

	// Remount takes the file system down and up again, so that nothing of it stays in
	// memory, with nothing on it open; nil is [sys.Remount]. Whoever has mounted it may
	// know better how.
	Remount func() error

	dir      string
	whole    bool     // dir was there before and stays
	lock     *os.File // the folder, locked while the run is alive; nil where that can't be had
	files    int
	observer *machine.Observer
}

// groundPrefix begins the name of every ground.
const groundPrefix = "holdfast-bench-"

var (
	// ErrNotFolder says that the place given is a file.
	ErrNotFolder = errors.New("is a file, not a folder")

	// ErrMemoryOnly refuses a file system that keeps its files in memory, where
	// a sync does nothing and a power cut takes everything.
	ErrMemoryOnly = errors.New("keeps its files in memory: a sync does nothing there, and no policy survives a power cut")
)

// A RoomError says that a file system has too little room.
type RoomError struct {
	Dir        string
	Free, Need int64 // bytes
	Files      bool  // Free and Need are files, and not bytes
}

func (e *RoomError) Error() string {
	if e.Files {
		return fmt.Sprintf("%s has room for %s more files, and the plan makes %s", e.Dir, humanize.Comma(e.Free), humanize.Comma(e.Need))
	}
	return fmt.Sprintf("%s has %s free, and the plan needs %s at once", e.Dir, humanize.IBytes(uint64(e.Free)), humanize.IBytes(uint64(e.Need)))
}

// memoryOnly lists the file systems that live in memory.
var memoryOnly = map[string]bool{"tmpfs": true, "ramfs": true}

// OpenGround makes a fresh folder inside parent. A parent that lives in memory is
// ErrMemoryOnly unless allowMemory is set. Close removes the folder.
func OpenGround(parent string, allowMemory bool) (*Ground, error) {
	info, err := os.Stat(parent)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s %w", parent, ErrNotFolder)
	}
	kind, err := sys.FileSystem(parent)
	if err != nil || kind == "" {
		kind = "unknown"
	}
	if memoryOnly[kind] && !allowMemory {
		return nil, fmt.Errorf("%s is on %s, which %w", parent, kind, ErrMemoryOnly)
	}
	g := &Ground{FileSystem: kind}
	if err := g.claim(parent); err != nil {
		return nil, err
	}
	g.observer = machine.Observe(g.dir)
	return g, nil
}

// claim makes the folder and locks it. Until it is locked somebody may take it for
// what a killed run has left; then it makes another.
func (g *Ground) claim(parent string) error {
	for {
		dir, err := os.MkdirTemp(parent, groundPrefix)
		if err != nil {
			return err
		}
		g.dir = filepath.Clean(dir)
		lock, ours := lockFolder(g.dir)
		if ours {
			g.lock = lock
			return nil
		}
		_ = os.Remove(dir) // who has locked it may only have looked, and leave it
	}
}

// OpenWhole takes all of an empty folder that is a file system of its own: one such as
// bfs has no others. Close empties it and leaves it.
func OpenWhole(dir string) (*Ground, error) {
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
	return &Ground{FileSystem: kind, dir: filepath.Clean(dir), whole: true, observer: machine.Observe(dir)}, nil
}

// Close removes the folder and all that is in it.
func (g *Ground) Close() error {
	if g.whole {
		return g.empty()
	}
	return errors.Join(os.RemoveAll(g.dir), g.unlock())
}

func (g *Ground) empty() error {
	entries, err := os.ReadDir(g.dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(g.dir, e.Name())))
	}
	return err
}

// Dir returns the folder's path.
func (g *Ground) Dir() string { return g.dir }

// Name returns the folder's name in its parent.
func (g *Ground) Name() string { return filepath.Base(g.dir) }

// Free returns the bytes that may still be written to the file system, where it
// tells.
func (g *Ground) Free() (int64, bool) {
	free, err := sys.FreeSpace(g.dir)
	return free, err == nil
}

// Need returns a *RoomError if the file system has less than size bytes free.
// Where the system does not tell its free space, there is no error.
func (g *Ground) Need(size int64) error {
	free, err := sys.FreeSpace(g.dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("free space of %s: %w", g.dir, err)
	}
	if free < size {
		return &RoomError{Dir: filepath.Dir(g.dir), Free: free, Need: size}
	}
	return nil
}

// NeedFiles returns a *RoomError if the file system has room for less than n more
// files. Where that is not known, or not fixed, there is no error.
func (g *Ground) NeedFiles(n int64) error {
	free, err := sys.FreeFiles(g.dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && free < n {
		err = &RoomError{Dir: filepath.Dir(g.dir), Free: free, Need: n, Files: true}
	}
	return err
}

// fresh returns a path in the folder that does not exist and was not used before.
func (g *Ground) fresh() (string, error) {
	g.files++
	path := filepath.Join(g.dir, strconv.Itoa(g.files))
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: %w in a folder that nobody else should write to", path, fs.ErrExist)
	}
	return path, nil
}

// settle makes the file system finish what the removal of the last file left to
// do, so that the next trial's first sync does not pay for it. Where a folder
// can't be synced, there is nothing to do.
func (g *Ground) settle() {
	d, err := os.Open(g.dir)
	if err != nil {
		return
	}
	_ = sys.SyncDir(d)
	_ = d.Close()
}
