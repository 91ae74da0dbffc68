//go:build go1.25

package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// A control is a plain correct program without holdfast, or a liar. A verdict counts only where the first
// loses nothing and each of the others is caught.
type control struct {
	name, about, finds string
	below, journal     bool // as in a Workload
}

func controls() []*crash.Workload {
	return []*crash.Workload{
		control{name: "plain-private", about: "a temporary file of mode 0600, and a rename in the opened directory", finds: "correct"}.attacked(0o600, true),
		control{name: "liar-open", about: "others may read its temporary file", finds: "readable"}.attacked(0o644, true),
		control{name: "liar-path", about: "finds its temporary file by the directory's path again", finds: "temporaries"}.attacked(0o600, false),
		control{name: "plain", about: "write, fsync, rename, fsync of the directory, without holdfast", finds: "correct", below: true}.replacing(1, replace),
		control{name: "plain-each", about: "the same in 3 goroutines, each with its own files, without holdfast", finds: "correct"}.inEach(),
		control{name: "plain-append", about: "write and fsync, in growing files, without holdfast", finds: "correct"}.appending(8, func(f holdfast.File, b []byte) error {
			if _, err := f.Write(b); err != nil {
				return err
			}
			return f.Sync()
		}),
		control{name: "liar-no-sync", about: "acknowledges records that it has not synced", finds: "lost", journal: true}.replacing(1, func(r *crash.Run, tmp, path string, data []byte) error {
			return errors.Join(r.WriteFile(tmp, data, false), r.Rename(tmp, path), r.SyncDir())
		}),
		control{name: "liar-early", about: "acknowledges before it syncs", finds: "lost"}.replacing(1, func(r *crash.Run, tmp, path string, data []byte) error {
			record, _ := crash.ReadRecord(data)
			r.Note(crash.Durable, record.ID, record.N)
			return errors.Join(r.WriteFile(tmp, data, true), r.Rename(tmp, path), r.SyncDir())
		}),
		control{name: "liar-no-directory", about: "does not sync the directory", finds: "lost"}.replacing(1, func(r *crash.Run, tmp, path string, data []byte) error {
			return errors.Join(r.WriteFile(tmp, data, true), r.Rename(tmp, path))
		}),
		control{name: "liar-name-first", about: "makes the name durable before the bytes", finds: "half", journal: true}.replacing(1, func(r *crash.Run, tmp, path string, data []byte) error {
			return errors.Join(r.WriteFile(tmp, data, false), r.Rename(tmp, path), r.SyncDir(), r.WriteFile(path, data, true))
		}),
		control{name: "liar-deaf", about: "acknowledges even if a call fails", finds: "lost"}.appending(1, func(f holdfast.File, b []byte) error {
			_, _ = f.Write(b)
			_ = f.Sync()
			return nil
		}),
		control{name: "liar-again", about: "trusts a second sync after a failed one", finds: "lost"}.appending(1, func(f holdfast.File, b []byte) error {
			if _, err := f.Write(b); err != nil {
				return err
			}
			if f.Sync() == nil {
				return nil
			}
			return f.Sync()
		}),
		control{name: "liar-memory", about: "acknowledges records that are only in its memory", finds: "lost"}.remembering(),
	}
}

// replace replaces a file as a plain correct program does.
func replace(r *crash.Run, tmp, path string, data []byte) error {
	if err := r.WriteFile(tmp, data, true); err != nil {
		return err
	}
	if err := r.Rename(tmp, path); err != nil {
		return err
	}
	return r.SyncDir()
}

// inEach is the control for file systems that keep what one process syncs, and not what several do.
func (c control) inEach() *crash.Workload {
	w := c.replacing(3, replace)
	w.Files, w.Cut = true, true
	return w
}

// replacing is a control that replaces files in some goroutines: each step writes one.
func (c control) replacing(writers int, step func(r *crash.Run, tmp, path string, data []byte) error) *crash.Workload {
	const names = 24 // in turn, each always of the same goroutine
	targets := func(holdfast.Policy) (all []crash.Target) {
		for id := range names {
			all = append(all, crash.Target{ID: uint32(id), Path: fmt.Sprintf("c%d", id), Object: true, Whole: true, Synced: true})
		}
		return all
	}
	return &crash.Workload{Name: c.name, About: c.about, Control: c.finds, Cut: c.finds != "correct", Below: c.below, Journal: c.journal, Policies: []holdfast.Policy{holdfast.EachDurable()},
		Targets: targets, Loss: onlyAcknowledged,
		Run: func(r *crash.Run) error {
			errs := make([]error, writers)
			var group sync.WaitGroup
			for first := range writers {
				group.Go(func() {
					for made := first; errs[first] == nil && r.More(made); made += writers {
						errs[first] = replaced(r, uint32(made%names), made, step)
					}
				})
			}
			group.Wait()
			return errors.Join(errs...)
		}}
}

// replaced takes a step, and notes what it promises.
func replaced(r *crash.Run, id uint32, made int, step func(r *crash.Run, tmp, path string, data []byte) error) error {
	n := uint64(r.Number+1)<<32 | uint64(made+1)
	data := crash.Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 700}.Append(nil)
	r.Note(crash.Begun, id, n)
	if err := step(r, fmt.Sprintf("c%d.tmp", id), fmt.Sprintf("c%d", id), data); err != nil {
		return err
	}
	r.Note(crash.Accepted, id, n)
	r.Note(crash.Durable, id, n)
	if r.Pause != nil {
		r.Pause(r.Random(id))
	}
	return nil
}

// attacked is a control of level hostile: each step opens the directory, or finds it by its path.
func (c control) attacked(mode fs.FileMode, byRoot bool) *crash.Workload {
	w := c.replacing(1, func(r *crash.Run, tmp, path string, data []byte) error {
		dir, err := os.OpenRoot(r.Path("."))
		if err != nil {
			return err
		}
		defer dir.Close()
		open, rename := dir.OpenFile, dir.Rename
		if !byRoot {
			open = func(name string, flag int, mode fs.FileMode) (*os.File, error) {
				return os.OpenFile(r.Path(name), flag, mode)
			}
			rename = r.Rename
		}
		f, err := open(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Sync(), f.Close(), rename(tmp, path))
	})
	w.Attacked, w.Files, w.Cut = true, true, false
	return w
}

// appending is a control that appends: each step writes a record. Each file gets a few, and then the
// next one has its turn. File systems keep a small file in another place than a larger one.
func (c control) appending(names int, step func(f holdfast.File, b []byte) error) *crash.Workload {
	const each = 32 // records at a time
	liar := c.finds != "correct"
	targets := func(holdfast.Policy) (all []crash.Target) {
		for id := range names {
			all = append(all, crash.Target{ID: uint32(id), Path: fmt.Sprint(log0, id)})
		}
		return all
	}
	return &crash.Workload{Name: c.name, About: c.about, Control: c.finds, Failing: liar, Policies: []holdfast.Policy{holdfast.EachDurable()},
		Targets: targets, Loss: onlyAcknowledged,
		Run: func(r *crash.Run) error {
			for made, id := 0, 0; r.More(made); id = (id + 1) % names {
				f, next, err := r.Open(fmt.Sprint(log0, id), uint32(id))
				if err != nil {
					return err
				}
				s := newStream(r, uint32(id), next[0])
				for ; err == nil && r.More(made) && (names == 1 || s.made < each); made++ {
					if err = step(f, s.record()); err == nil {
						s.accepted(r.Policy)
					}
				}
				if err := errors.Join(err, f.Close()); err != nil {
					return err
				}
			}
			return nil
		}}
}

// remembering is the liar of level kill. A kill takes memory only, so the liar must keep something there.
func (c control) remembering() *crash.Workload {
	return &crash.Workload{Name: c.name, About: c.about, Control: c.finds, Policies: []holdfast.Policy{holdfast.EachDurable()},
		Targets: streamTargets(log0, 1),
		Run: func(r *crash.Run) error {
			f, next, err := r.Open(log0, 0)
			if err != nil {
				return err
			}
			w, err := holdfast.New(f, holdfast.Buffered(4*holdfast.KiB))
			if err != nil {
				return err
			}
			s := newStream(r, 0, next[0])
			for r.More(s.made) {
				if _, err := w.Write(s.record()); err != nil {
					return err
				}
				s.accepted(holdfast.EachDurable())
			}
			return w.Close()
		}}
}
