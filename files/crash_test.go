//go:build go1.25

package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/catalogue"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

const (
	tries     = 2
	noFile    = "it has no file of the caller's"
	inResults = "a failure of a whole file is in its result alone"
)

func TestSetKeepsThePromises(t *testing.T) {
	isolate.Once(t)
	for _, lines := range []bool{false, true} {
		t.Run(map[bool]string{false: "Append", true: "Append lines"}[lines], func(t *testing.T) {
			crashsuite.Run(t, crashsuite.Opener{
				Name: "Set.Append",
				Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
					return &appender{openSet(g, lines), path.Join(g.Dir, "log"), lines}, nil
				},
				Read: func(_ *testing.T, found map[string][]byte) ([][]byte, error) {
					return crashsuite.Lines(found["log"]), nil
				},
				Data:    "log",
				Tries:   tries,
				AtRisk:  func(err error) int64 { return err.(*files.Error).AtRisk },
				Slow:    true,
				Loss:    func(p holdfast.Policy) holdfast.Loss { return files.Options{Policy: p}.Loss(1) },
				Resumes: lines,
				Heals:   lines,
				Lacks:   map[string]string{crashsuite.Panics: noFile},
			})
		})
	}
	whole := crashsuite.Opener{
		// Of a policy they use the sync alone.
		Policies:   func(p holdfast.Policy) bool { return p.Buffer < holdfast.KiB && p.FlushEvery == 0 },
		FailedSync: crashsuite.OfCall,
		Tries:      tries,
		Resumes:    true,
		Clean:      func(p holdfast.Policy) bool { return p.Sync.Mode != holdfast.SyncNever },
		Loss: func(p holdfast.Policy) holdfast.Loss {
			if p.Sync.Mode == holdfast.SyncNever {
				return holdfast.Unbuffered().Loss()
			}
			return holdfast.Loss{}
		},
		Lacks: map[string]string{crashsuite.Panics: noFile, crashsuite.ToldOver: inResults, crashsuite.Heard: inResults, crashsuite.Within: inResults},
	}
	t.Run("WriteFile", func(t *testing.T) {
		whole.Name = "Set.WriteFile"
		whole.Open = func(g *crashsuite.Ground) (crashsuite.Subject, error) {
			for seq := 0; seq < 30 && g.Disk != nil; seq += 2 {
				_ = g.Disk.WriteFile(path.Join(g.Dir, nameOfRecord(fmt.Appendf(nil, "0 %04d", seq))), []byte(old), 0o644) // it may be there
			}
			return replacer{openSet(g, false), g.Dir}, nil
		}
		whole.Read = func(_ *testing.T, found map[string][]byte) ([][]byte, error) {
			maps.DeleteFunc(found, func(_ string, data []byte) bool { return string(data) == old })
			return crashsuite.EachFile(found), nil
		}
		crashsuite.Run(t, whole)
	})
	t.Run("WriteAll", func(t *testing.T) {
		whole.Name = "Set.WriteAll"
		whole.Open = func(g *crashsuite.Ground) (crashsuite.Subject, error) { return batcher{openSet(g, false), g.Dir}, nil }
		whole.Read = readBatches
		crashsuite.Run(t, whole)
	})
}

// TestWorkloadsOfFilesHold: what holdfast prove runs.
func TestWorkloadsOfFilesHold(t *testing.T) {
	crashsuite.Prove(t, time.Second, slices.DeleteFunc(catalogue.Workloads(), func(w *crash.Workload) bool {
		return !slices.Contains([]string{"append", "append-mounted", "append-replace", "batch", "pending", "replace-each", "whole-create", "whole-create-dirs", "whole-truncate", "whole-append", "whole-replace", "whole-many"}, w.Name)
	})...)
}

func openSet(g *crashsuite.Ground, lines bool) *files.Set {
	var d vfs.Disk = sys.Disk{}
	if g.Disk != nil {
		d = g.Disk
	}
	f := newSet(d, files.Options{Policy: g.Policy, Lines: lines, Retry: files.Retry{Attempts: tries, Base: time.Millisecond, Cap: time.Millisecond}, Handles: 16})
	f.OnError(func(e *files.Error) { g.OnError(e) })
	return f
}

// An appender appends to one path.
type appender struct {
	*files.Set
	path  string
	lines bool
}

func (a *appender) Write(p []byte) (n int, err error) {
	err = a.Append(context.Background(), a.path, p)
	failed := (*files.Error)(nil)
	switch {
	case !errors.As(err, &failed):
		return len(p), err
	case a.lines && failed.Offset < int64(len(p)):
		return 0, err // the whole line is to be given again
	}
	return int(failed.Offset), err
}

func (a *appender) Flush() error { return a.Set.Flush(context.Background()) }
func (a *appender) Sync() error  { return a.Set.Sync(context.Background()) }

// old is a replaced file's content.
const old = "old\n"

// A replacer writes each record to a file of its own. Some of them are there already.
type replacer struct {
	*files.Set
	dir string
}

// nameOfRecord returns the name of a record's file: its stream and its number.
func nameOfRecord(p []byte) string { return strings.ReplaceAll(string(p[:6]), " ", "-") }

func (r replacer) Write(p []byte) (n int, err error) {
	result, err := r.WriteFile(context.Background(), path.Join(r.dir, nameOfRecord(p)), p, files.Replace)
	if result.Outcome == holdfast.OutcomeUntouched {
		return 0, err
	}
	return len(p), err
}

// A batcher writes three files of each record.
type batcher struct {
	*files.Set
	dir string
}

func (b batcher) Write(p []byte) (n int, err error) {
	results, err := b.WriteAll(context.Background(), func(yield func(files.Write) bool) {
		for i := range 3 {
			if !yield(files.Write{Path: path.Join(b.dir, fmt.Sprint(nameOfRecord(p), ".", i)), Data: p, Mode: files.Replace}) {
				return
			}
		}
	})
	for _, r := range results.All() {
		if r.Outcome != holdfast.OutcomeUntouched {
			n = len(p)
		}
	}
	return n, err
}

// readBatches returns the records of which all three files are there.
func readBatches(_ *testing.T, found map[string][]byte) (all [][]byte, err error) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		base, first := strings.CutSuffix(name, ".0")
		data := found[name]
		switch {
		case !first || strings.HasPrefix(name, "."):
		case bytes.Equal(data, found[base+".1"]) && bytes.Equal(data, found[base+".2"]):
			all = append(all, data)
		}
	}
	return all, nil
}
