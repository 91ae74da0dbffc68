package volume

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A volume is a directory with the prefix. These names are in it, and mountName.
const (
	prefix     = "holdfast-volume-"
	markerName = "volume.json"
	imageName  = "image"
)

func markerIn(dir string) string { return filepath.Join(dir, markerName) }
func imageIn(dir string) string  { return filepath.Join(dir, imageName) }

// A marker is written into a volume's directory first, and locked while it is in use.
type marker struct {
	Kind    string    `json:"kind"`
	Process int       `json:"process"`
	Started uint64    `json:"started"` // field 22 of /proc/PID/stat
	Boot    string    `json:"boot"`    // /proc/sys/kernel/random/boot_id
	Made    time.Time `json:"made"`
	Image   string    `json:"image"`
	Mount   string    `json:"mount"`
}

// dirName makes the name of a directory: a random number and a checksum of it. By the
// checksum we recognize our directory before it has a marker.
func dirName(random uint32) string {
	text := fmt.Sprintf("%08x", random)
	return fmt.Sprintf("%s%s%08x", prefix, text, crc32.ChecksumIEEE([]byte(prefix+text)))
}

func ourName(name string) bool {
	var random uint32
	text, ok := strings.CutPrefix(name, prefix)
	if !ok || len(text) != 16 {
		return false
	}
	_, err := fmt.Sscanf(text[:8], "%08x", &random)
	return err == nil && name == dirName(random)
}

// claim makes a new directory in parent with its marker, and takes the marker's lock.
func claim(parent string, k Kind) (dir *workdir.Dir, lock *os.File, err error) {
	for range 100 {
		dir, err = workdir.Make(parent, dirName(rand.Uint32()))
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			continue // the name exists, or another process removed it as a leftover
		}
		if err != nil {
			return nil, nil, err
		}
		lock, err = mark(dir, k)
		if err == nil {
			return dir, lock, nil
		}
		_ = dir.Root().Remove(markerName)
		_ = dir.Remove()
		_ = dir.Close()
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrAlive) {
			break // else another process took it for a leftover before it was locked
		}
	}
	return nil, nil, err
}

// mark writes the marker of a new directory and returns it locked.
func mark(dir *workdir.Dir, k Kind) (f *os.File, err error) {
	f, err = dir.Root().OpenFile(markerName, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f, err = nil, errors.Join(err, f.Close())
		}
	}()
	if _, err := takeLock(f); err != nil {
		return f, err
	}
	if err := stillIn(dir, f); err != nil {
		return f, err
	}
	m := marker{Kind: k.Name, Process: os.Getpid(), Boot: bootID(), Made: time.Now(), Image: imageIn(dir.Name()), Mount: mountIn(dir.Name())}
	m.Started, _ = startOf(m.Process)
	text, err := json.Marshal(m)
	if err != nil {
		return f, err
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		return f, err
	}
	return f, f.Sync() // so that after a power cut it is a leftover too
}

// stillIn returns an error unless a directory and its marker still have their names.
func stillIn(dir *workdir.Dir, f *os.File) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := dir.Root().Lstat(markerName)
	if err != nil {
		return err
	}
	if !os.SameFile(is, now) || !is.Mode().IsRegular() {
		return fmt.Errorf("%s in %s was replaced by another file", markerName, dir.Name())
	}
	return dir.Still()
}

// takeLock returns ErrAlive if another process has the lock. Where the system has no
// such locks it takes none; then the marker's process decides whether the volume is in use.
func takeLock(f *os.File) (locked bool, err error) {
	locked, err = sys.TryLock(f)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return false, nil
	case err == nil && !locked:
		return false, ErrAlive
	}
	return locked, err
}

func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// startOf returns when a process was started, in clock ticks after the boot.
func startOf(process int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	var ticks uint64
	if len(fields) < 20 {
		return 0, errors.New("/proc has too little of the process")
	}
	_, err = fmt.Sscan(string(fields[19]), &ticks)
	return ticks, err
}

// alive reports whether the process that made it runs.
func (m marker) alive() bool {
	started, err := startOf(m.Process)
	return m.Boot == bootID() && err == nil && started == m.Started
}

// readMarker reads a marker. If the file is empty, the marker is not written yet.
func readMarker(f *os.File) (marker, error) {
	var m marker
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<16))
	if err != nil || len(text) == 0 {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Kind == "" || m.Process == 0 {
		return m, fmt.Errorf("%s is not a marker of a volume", f.Name())
	}
	return m, nil
}
