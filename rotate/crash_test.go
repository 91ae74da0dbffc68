package rotate

import (
	"errors"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestLogKeepsThePromises while it rotates by size, and compresses what it has rotated away.
func TestLogKeepsThePromises(t *testing.T) {
	for _, windows := range []bool{false, true} {
		t.Run(map[bool]string{false: "renames", true: "closes first"}[windows], func(t *testing.T) {
			crashsuite.Run(t, crashsuite.Opener{
				Name: "rotate.File",
				Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
					var d disk = sys.Disk{}
					first := runtime.GOOS == "windows"
					if g.Disk != nil {
						d, first = readable(g), windows
					}
					o := Options{Policy: g.Policy, MaxSize: 1500, Compress: !windows && g.Policy.Buffer >= holdfast.KiB, OnError: func(e *Error) {
						if e.Op == "write" || e.Op == "sync" { // else it is of no record
							g.OnError(e)
						}
					}}
					f, err := open(d, path.Join(g.Dir, "app.log"), o, first)
					if err != nil {
						return nil, err
					}
					if g.Policy.Sync.Mode == holdfast.SyncNever {
						return withoutSync{f}, nil
					}
					return f, nil
				},
				Policies:   func(p holdfast.Policy) bool { return !windows || p.Sync.Mode == holdfast.SyncClose || p.Sync.Waits() }, // each of them rotates
				Read:       readBackups,
				Data:       "app.log",
				FailedSync: crashsuite.Later,
				AtRisk:     func(err error) int64 { return err.(*Error).AtRisk },
				Resumes:    true,
				Heals:      true,
				Lacks: map[string]string{
					crashsuite.Panics:   "it has no file of the caller's",
					crashsuite.ToldOver: "a Write after it succeeds, and OnError has heard of it",
				},
			})
		})
	}
}

// withoutSync is a log whose Sync covers the current file alone.
type withoutSync struct{ f *File }

func (w withoutSync) Write(p []byte) (int, error) { return w.f.Write(p) }
func (w withoutSync) Close() error                { return w.f.Close() }

func readable(g *crashsuite.Ground) *memory {
	return &memory{Disk: g.Disk, dir: g.Dir, sources: map[int]string{}}
}

// readBackups returns the lines of all files. What a crash has torn stays at the end of its file.
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
