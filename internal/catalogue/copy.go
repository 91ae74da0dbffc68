//go:build go1.25

package catalogue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// copying copies new versions of files over old ones. It needs real files.
func copying(name, about string, count, size int, o filecopy.Options) *crash.Workload {
	return &crash.Workload{Name: name, About: about, Files: true, Tidy: !o.Resume,
		Policies: []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable(), holdfast.EachDurable()},
		Targets: func(holdfast.Policy) (all []crash.Target) {
			for id := range count {
				all = append(all, crash.Target{ID: uint32(id), Path: fmt.Sprintf("to/c%d", id), Object: true, Whole: true,
					Synced: o.Atomic, Part: !o.Atomic})
			}
			return all
		},
		Loss: onlyAcknowledged,
		Run: func(r *crash.Run) error {
			o := o
			o.Policy = r.Policy
			return copies(r, count, size, o)
		}}
}

// zeroPart loses a page of a copy that was interrupted, as a power cut may: it was not synced.
func zeroPart(r *crash.Run) error {
	entries, err := os.ReadDir(r.Path("to"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		const page = 4096
		pages := info.Size() / page
		if !strings.HasPrefix(e.Name(), ".") || pages < 3 {
			continue
		}
		f, err := os.OpenFile(r.Path("to/"+e.Name()), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(make([]byte, page), page*r.Random(0).Int64N(pages))
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// copies makes sources of a new version and copies them, again and again. It first copies the files
// that the run before has left.
func copies(r *crash.Run, count, size int, o filecopy.Options) error {
	if err := errors.Join(os.MkdirAll(r.Path("from"), 0o777), os.MkdirAll(r.Path("to"), 0o777), r.SyncDir()); err != nil {
		return err
	}
	if o.Resume {
		if err := zeroPart(r); err != nil {
			return err
		}
	}
	for made := 0; r.More(made); made++ {
		versions, pairs := make([]uint64, count), map[string]string{}
		for id := range count {
			from := path.Join("from", fmt.Sprintf("c%d", id))
			data, err := r.ReadFile(from)
			if err != nil {
				return err
			}
			old, ok := crash.ReadRecord(data)
			versions[id] = old.N
			if made > 0 || !ok || old.Size != len(data) {
				versions[id] = uint64(r.Number+1)<<32 | uint64(made+1)
				data := crash.Record{ID: uint32(id), N: versions[id], At: time.Now().UnixNano(), Size: size}.Append(nil)
				// Durable, so that a copy that goes on after a power cut has the source that it began with.
				if err := errors.Join(r.WriteFile(from+".new", data, true), r.Rename(from+".new", from), crash.Real(r.Path("from")).SyncDir()); err != nil {
					return err
				}
			}
			r.Note(crash.Begun, uint32(id), versions[id])
			pairs[r.Path(fmt.Sprintf("to/c%d", id))] = r.Path(from)
		}
		if count == 1 {
			for dst, src := range pairs {
				if _, err := filecopy.File(context.Background(), dst, src, o); err != nil {
					return err
				}
			}
		} else if _, err := filecopy.All(context.Background(), maps.All(pairs), o); err != nil {
			return err
		}
		for id, n := range versions {
			r.Note(crash.Accepted, uint32(id), n)
			if o.Atomic || o.Policy.Sync.Mode != holdfast.SyncNever {
				r.Note(crash.Durable, uint32(id), n)
			}
		}
	}
	return nil
}

// copyDirs copies directories with a directory in each, each to a new place.
func copyDirs() *crash.Workload {
	const trees, each = 12, 2
	in := func(top string, id uint32) string { return fmt.Sprintf("%s/t%d/s/c%d", top, id/each, id) }
	return &crash.Workload{Name: "copy-dirs", About: "filecopy.All of directories, to new ones", Files: true, Slow: 2 * time.Millisecond,
		Policies: []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable(), holdfast.EachDurable()},
		Targets: func(holdfast.Policy) (all []crash.Target) {
			for id := range uint32(trees * each) {
				all = append(all, crash.Target{ID: id, Path: in("to", id), Object: true, Whole: true, Part: true})
			}
			return all
		},
		Loss: onlyAcknowledged,
		Run: func(r *crash.Run) error {
			if err := errors.Join(os.MkdirAll(r.Path("to"), 0o777), r.SyncDir()); err != nil {
				return err
			}
			n := uint64(r.Number+1) << 32
			for tree := range uint32(trees) {
				if !r.More(0) {
					return nil
				}
				there := true
				for id := tree * each; id < (tree+1)*each; id++ {
					data, err := r.ReadFile(in("to", id))
					if err != nil {
						return err
					}
					_, ok := crash.ReadRecord(data)
					there = there && ok
					if err := os.MkdirAll(filepath.Dir(r.Path(in("from", id))), 0o777); err != nil {
						return err
					}
					record := crash.Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 3000}.Append(nil)
					if err := os.WriteFile(r.Path(in("from", id)), record, 0o666); err != nil {
						return err
					}
				}
				if there {
					continue
				}
				for id := tree * each; id < (tree+1)*each; id++ {
					r.Note(crash.Begun, id, n)
				}
				name := fmt.Sprintf("t%d", tree)
				pairs := map[string]string{r.Path("to/" + name): r.Path("from/" + name)}
				if _, err := filecopy.All(context.Background(), maps.All(pairs), filecopy.Options{Policy: r.Policy}); err != nil {
					return err
				}
				for id := tree * each; id < (tree+1)*each; id++ {
					r.Note(crash.Accepted, id, n)
					if r.Policy.Sync.Mode != holdfast.SyncNever {
						r.Note(crash.Durable, id, n)
					}
				}
				if r.Pause != nil {
					r.Pause(nil)
				}
			}
			return nil
		}}
}
