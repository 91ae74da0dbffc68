//go:build go1.25

package wal

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestLogKeepsThePromises on systems that write and sync in one call, and on others.
func TestLogKeepsThePromises(t *testing.T) {
	for name, under := range map[string]func(*fault.Disk) disk{
		"dsync":     func(d *fault.Disk) disk { return d },
		"fdatasync": func(d *fault.Disk) disk { return noDsync{d} },
	} {
		lacks := map[string]string{crashsuite.Panics: "it has no file of the caller's"}
		if name == "dsync" {
			for _, promise := range []string{crashsuite.Told, crashsuite.ToldOver, crashsuite.FinalSync, crashsuite.Heard, crashsuite.Within} {
				lacks[promise] = "a write that fails is a failed sync there: see fdatasync"
			}
		}
		t.Run(name, func(t *testing.T) {
			crashsuite.Run(t, crashsuite.Opener{
				Name: "wal.Log",
				Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
					var d disk = sys.Disk{}
					if g.Disk != nil {
						d = under(g.Disk)
					}
					l, _, err := open(d, g.Dir, Options{Policy: g.Policy, SegmentSize: leastSegment, OnError: func(e *Error) { g.OnError(e) }})
					return appender{l}, err
				},
				Policies:   func(p holdfast.Policy) bool { return name != "dsync" || p.Sync.Waits() }, // others make no such calls
				Read:       readLog,
				Data:       "*.wal",
				Size:       func(record int) int { return (record + 36 + 7) &^ 7 },
				WriteSyncs: name == "dsync",
				AtRisk:     func(err error) int64 { return err.(*Error).AtRisk },
				OpenSyncs:  true,
				SyncWaits:  true,
				Resumes:    true,
				Clean:      func(holdfast.Policy) bool { return true },
				Lacks:      lacks,
			})
		})
	}
}

// An appender appends records one by one.
type appender struct{ *Log }

func (l appender) Write(p []byte) (n int, err error) {
	index, err := l.Append(p)
	if index == 0 {
		return 0, err
	}
	return len(p), err
}

func (l appender) Sync() error {
	err := l.Wait(background, l.Last())
	return err
}

// readLog opens what is there on a disk of its own.
func readLog(_ *testing.T, files map[string][]byte) ([][]byte, error) {
	l, found, err := open(crashsuite.OnDisk("/log", files), "/log", small)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	all, err := recordsOf(l, found.First)
	return slices.Clone(all), err
}
