package prove

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A control is a plain correct program without holdfast, or a liar. A verdict counts only where the first
// loses nothing and each of the others is caught.
type control struct{ name, about, finds string }

func (all *catalogue) controls() {
	*all = append(*all,
		control{"plain-private", "a temporary of mode 0600, and a rename in the directory that was opened", "correct"}.attacked(0o600, true),
		control{"liar-open", "others may read its temporary", "readable"}.attacked(0o644, true),
		control{"liar-path", "finds its temporary by the directory's path again", "temporaries"}.attacked(0o600, false),
		control{"plain", "write, fsync, rename, fsync of the directory: no holdfast", "correct"}.replacing(1, (*Run).replace),
		control{"plain-each", "the same in 3 goroutines, each its own files: no holdfast", "correct"}.inEach(),
		control{"plain-append", "write and fsync, in files that grow: no holdfast", "correct"}.appending(8, func(f holdfast.File, b []byte) error {
			if _, err := f.Write(b); err != nil {
				return err
			}
			return f.Sync()
		}),
		control{"liar-no-sync", "acknowledges what it has not synced", "lost"}.replacing(1, func(r *Run, tmp, path string, data []byte) error {
			return errors.Join(r.WriteFile(tmp, data, false), r.Rename(tmp, path), r.SyncDir())
		}),
		control{"liar-early", "acknowledges before it syncs", "lost"}.replacing(1, func(r *Run, tmp, path string, data []byte) error {
			record, _ := ReadRecord(data)
			r.Note(Durable, record.ID, record.N)
			return errors.Join(r.WriteFile(tmp, data, true), r.Rename(tmp, path), r.SyncDir())
		}),
		control{"liar-no-directory", "does not sync the directory", "lost"}.replacing(1, func(r *Run, tmp, path string, data []byte) error {
			return errors.Join(r.WriteFile(tmp, data, true), r.Rename(tmp, path))
		}),
		control{"liar-name-first", "makes the name durable before the bytes", "half"}.replacing(1, func(r *Run, tmp, path string, data []byte) error {
			return errors.Join(r.WriteFile(tmp, data, false), r.Rename(tmp, path), r.SyncDir(), r.WriteFile(path, data, true))
		}),
		control{"liar-deaf", "acknowledges whatever its calls return", "lost"}.appending(1, func(f holdfast.File, b []byte) error {
			_, _ = f.Write(b)
			_ = f.Sync()
			return nil
		}),
		control{"liar-again", "syncs again when a sync has failed", "lost"}.appending(1, func(f holdfast.File, b []byte) error {
			if _, err := f.Write(b); err != nil {
				return err
			}
			if f.Sync() == nil {
				return nil
			}
			return f.Sync()
		}),
		control{"liar-memory", "acknowledges what is in its memory", "lost"}.remembering())
}

// replace is what a plain correct program does.
func (r *Run) replace(tmp, path string, data []byte) error {
	if err := r.WriteFile(tmp, data, true); err != nil {
		return err
	}
	if err := r.Rename(tmp, path); err != nil {
		return err
	}
	return r.SyncDir()
}

// inEach is the control for file systems that keep what one process syncs, and not what several do.
func (c control) inEach() *Workload {
	w := c.replacing(3, (*Run).replace)
	w.Files, w.Cut = true, true
	return w
}

// replacing is a control that replaces files in some goroutines: each step writes one.
func (c control) replacing(writers int, step func(r *Run, tmp, path string, data []byte) error) *Workload {
	const names = 24 // in turn, each always of the same goroutine
	targets := func(holdfast.Policy) (all []Target) {
		for id := range names {
			all = append(all, Target{ID: uint32(id), Path: fmt.Sprintf("c%d", id), Object: true, Whole: true, Synced: true})
		}
		return all
	}
	return &Workload{Name: c.name, About: c.about, Control: c.finds, Cut: c.finds != "correct", Policies: []holdfast.Policy{holdfast.EachDurable()},
		Targets: targets, Loss: c.loss,
		Run: func(r *Run) error {
			errs := make([]error, writers)
			var group sync.WaitGroup
			for first := range writers {
				group.Add(1)
				go func() {
					defer group.Done()
					for made := first; errs[first] == nil && r.more(made); made += writers {
						errs[first] = r.replaced(uint32(made%names), made, step)
					}
				}()
			}
			group.Wait()
			return errors.Join(errs...)
		}}
}

// replaced takes a step, and notes what it promises.
func (r *Run) replaced(id uint32, made int, step func(r *Run, tmp, path string, data []byte) error) error {
	n := uint64(r.Number+1)<<32 | uint64(made+1)
	data := Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 700}.Append(nil)
	r.Note(Begun, id, n)
	if err := step(r, fmt.Sprintf("c%d.tmp", id), fmt.Sprintf("c%d", id), data); err != nil {
		return err
	}
	r.Note(Accepted, id, n)
	r.Note(Durable, id, n)
	if r.Pause != nil {
		r.Pause(r.random(id))
	}
	return nil
}

// loss bounds no loss of what was not acknowledged.
func (control) loss(holdfast.Policy) holdfast.Loss {
	return holdfast.Loss{Power: holdfast.Bound{Bytes: holdfast.Unlimited, Time: holdfast.Unlimited}}
}

// attacked is a control of level hostile: each step opens the directory, or finds it by its path.
func (c control) attacked(mode fs.FileMode, byRoot bool) *Workload {
	w := c.replacing(1, func(r *Run, tmp, path string, data []byte) error {
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
func (c control) appending(names int, step func(f holdfast.File, b []byte) error) *Workload {
	const each = 32 // records at a time
	liar := c.finds != "correct"
	targets := func(holdfast.Policy) (all []Target) {
		for id := range names {
			all = append(all, Target{ID: uint32(id), Path: fmt.Sprint(log0, id)})
		}
		return all
	}
	return &Workload{Name: c.name, About: c.about, Control: c.finds, Failing: liar, Policies: []holdfast.Policy{holdfast.EachDurable()},
		Targets: targets, Loss: c.loss,
		Run: func(r *Run) error {
			for made, id := 0, 0; r.more(made); id = (id + 1) % names {
				f, next, err := r.open(fmt.Sprint(log0, id), uint32(id))
				if err != nil {
					return err
				}
				s := r.stream(uint32(id), next[0])
				for ; err == nil && r.more(made) && (names == 1 || s.made < each); made++ {
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
func (c control) remembering() *Workload {
	return &Workload{Name: c.name, About: c.about, Control: c.finds, Policies: []holdfast.Policy{holdfast.EachDurable()},
		Targets: streamTargets(log0, 1),
		Run: func(r *Run) error {
			f, next, err := r.open(log0, 0)
			if err != nil {
				return err
			}
			w, err := holdfast.New(f, holdfast.Buffered(4*holdfast.KiB))
			if err != nil {
				return err
			}
			s := r.stream(0, next[0])
			for r.more(s.made) {
				if _, err := w.Write(s.record()); err != nil {
					return err
				}
				s.accepted(holdfast.EachDurable())
			}
			return w.Close()
		}}
}
