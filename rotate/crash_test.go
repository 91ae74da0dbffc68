//go:build go1.25

package rotate

import (
	"errors"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestLogKeepsThePromises while it rotates by size, and compresses what it has rotated away. A process
// before it was killed in the middle of a compression.
func TestLogKeepsThePromises(t *testing.T) {
	isolate.Once(t)
	const (
		renames     = "renames"
		closesFirst = "closes first" // as on Windows
		isMoved     = "is moved"     // by another program
		isShared    = "is shared"    // with other processes
	)
	for _, way := range []string{renames, closesFirst, isMoved, isShared} {
		lacks := map[string]string{
			crashsuite.Panics:   "it has no file of the caller's",
			crashsuite.ToldOver: "a Write after it succeeds, and OnError has heard of it",
		}
		if way == isShared && runtime.GOOS == "windows" {
			lacks[crashsuite.LeavesReal] = "Open refuses Shared here"
		}
		t.Run(way, func(t *testing.T) {
			crashsuite.Run(t, crashsuite.Opener{
				Name: "rotate.File",
				Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
					var d disk = sys.Disk{}
					first := runtime.GOOS == "windows"
					if g.Disk != nil {
						d, first = readable(g), way == closesFirst
						leaveHalfDone(g)
					}
					o := Options{Policy: g.Policy, MaxSize: 1500, Shared: way == isShared, Compress: way != closesFirst && g.Policy.Buffer >= holdfast.KiB, OnError: func(e *Error) {
						if e.Op == "write" || e.Op == "sync" { // else it is of no record
							g.OnError(e)
						}
					}}
					f, err := open(d, path.Join(g.Dir, "app.log"), o, first)
					if err != nil {
						return nil, err
					}
					m := &moved{File: f}
					if way == isMoved {
						m.disk, m.dir = g.Disk, g.Dir
					}
					if g.Policy.Sync.Mode == holdfast.SyncNever {
						return withoutSync{m}, nil
					}
					return m, nil
				},
				Policies: func(p holdfast.Policy) bool {
					return way == renames || p.Sync.Mode == holdfast.SyncClose || p.Sync.Waits()
				},
				Read:       readBackups,
				Data:       "app.log",
				FailedSync: crashsuite.Later,
				AtRisk:     func(err error) int64 { return err.(*Error).AtRisk },
				Resumes:    true,
				Heals:      true,
				Lacks:      lacks,
			})
		})
	}
}

// moved is a log that another program moves before each tenth record, where disk is not nil.
type moved struct {
	*File
	disk    *fault.Disk
	dir     string
	lock    sync.RWMutex // while it moves there is no other record, and no rotation
	records atomic.Int64
}

func (m *moved) Write(p []byte) (int, error) {
	if m.disk != nil && m.records.Add(1)%10 == 0 {
		m.move()
	}
	m.lock.RLock()
	defer m.lock.RUnlock()
	return m.File.Write(p)
}

// move gives the log's file a name that sorts behind all backups' names.
func (m *moved) move() {
	m.lock.Lock()
	defer m.lock.Unlock()
	last := path.Join(m.dir, "app-")
	for name := range m.disk.ProcessCrash().Files {
		if strings.HasPrefix(path.Base(name), "app-") {
			last = max(last, strings.TrimSuffix(strings.TrimSuffix(name, partly), packed))
		}
	}
	if m.disk.Move(path.Join(m.dir, "app.log"), last+".z") == nil {
		_ = m.Reopen() // OnError hears of it, and it is tried again
	}
}

// withoutSync is a log whose Sync covers the current file alone.
type withoutSync struct{ m *moved }

func (w withoutSync) Write(p []byte) (int, error) { return w.m.Write(p) }
func (w withoutSync) Close() error                { return w.m.Close() }

// leaveHalfDone leaves an empty backup of which a compression was killed, and one of a backup that is gone.
func leaveHalfDone(g *crashsuite.Ground) {
	for name, data := range map[string]string{
		"app-1999-01-01T00-00-00.000.log":         "",
		"app-1999-01-01T00-00-00.000.log.gz.part": "\x1f\x8b half",
		"app-1998-01-01T00-00-00.000.log.gz.part": "\x1f\x8b half, and its backup is gone",
	} {
		_ = g.Disk.WriteFile(path.Join(g.Dir, name), []byte(data), 0o644) // it may be there
	}
}

func readable(g *crashsuite.Ground) *memory {
	return &memory{Disk: g.Disk, dir: g.Dir, sources: map[int]string{}}
}

// readBackups returns the lines of all files. A torn record stays at the end of its file.
func readBackups(_ *testing.T, files map[string][]byte) (all [][]byte, err error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, plain := files[strings.TrimSuffix(name, packed)]
		if !strings.HasPrefix(name, "app-") || strings.HasSuffix(name, partly) || strings.HasSuffix(name, packed) && plain {
			continue
		}
		data, failed := text(map[string][]byte{name: files[name]}, true)
		all, err = append(all, crashsuite.Lines(data)...), errors.Join(err, failed)
	}
	return append(all, crashsuite.Lines(files["app.log"])...), err
}
