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
)

// What a volume has: a folder with the prefix, with these in it, and mountName.
const (
	prefix     = "holdfast-volume-"
	markerName = "volume.json"
	imageName  = "image"
)

func markerIn(folder string) string { return filepath.Join(folder, markerName) }
func imageIn(folder string) string  { return filepath.Join(folder, imageName) }

// A marker is written into a volume's folder first, and locked while it is in use.
type marker struct {
	Kind    string    `json:"kind"`
	Process int       `json:"process"`
	Started uint64    `json:"started"` // field 22 of /proc/PID/stat
	Boot    string    `json:"boot"`    // /proc/sys/kernel/random/boot_id
	Made    time.Time `json:"made"`
	Image   string    `json:"image"`
	Mount   string    `json:"mount"`
}

// folderName makes the name of a folder: a random number, and a sum of it, by which
// a folder is known for ours before there is a marker in it.
func folderName(random uint32) string {
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
	return err == nil && name == folderName(random)
}

// claim makes a new folder in parent with its marker, and holds the marker's lock.
func claim(parent string, k Kind) (folder string, lock *os.File, err error) {
	for range 100 {
		folder = filepath.Join(parent, folderName(rand.Uint32()))
		if err = os.Mkdir(folder, 0o700); errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		lock, err = mark(folder, k)
		if err == nil {
			return folder, lock, nil
		}
		_ = os.Remove(markerIn(folder))
		_ = os.Remove(folder)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrAlive) {
			break // else it was taken for a leftover before it was locked
		}
	}
	return "", nil, err
}

func mark(folder string, k Kind) (*os.File, error) {
	f, err := os.OpenFile(markerIn(folder), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = writeMarker(f, folder, k)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func writeMarker(f *os.File, folder string, k Kind) error {
	if _, err := takeLock(f); err != nil {
		return err
	}
	if _, err := os.Stat(f.Name()); err != nil {
		return err
	}
	m := marker{Kind: k.Name, Process: os.Getpid(), Boot: bootID(), Made: time.Now(), Image: imageIn(folder), Mount: mountIn(folder)}
	m.Started, _ = startOf(m.Process)
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		return err
	}
	return f.Sync() // so that what a power cut leaves is known too
}

// takeLock returns ErrAlive if another has the lock. Where there are no such locks,
// it takes none, and the marker's process says whether the volume is in use.
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

// alive tells whether the process that made it runs.
func (m marker) alive() bool {
	started, err := startOf(m.Process)
	return m.Boot == bootID() && err == nil && started == m.Started
}

// readMarker reads a marker. One that is empty was not yet written.
func readMarker(f *os.File) (marker, error) {
	var m marker
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<16))
	if err != nil || len(text) == 0 {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Kind == "" || m.Process == 0 {
		return m, fmt.Errorf("%s is no marker of a volume", f.Name())
	}
	return m, nil
}
