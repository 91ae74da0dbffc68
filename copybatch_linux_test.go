package holdfast_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestDurableCopiesSurviveTheStopOfTheirFileSystem is
// TestDurableFilesSurviveTheStopOfTheirFileSystem for trees.
func TestDurableCopiesSurviveTheStopOfTheirFileSystem(t *testing.T) {
	onFileSystemsToStop(t, func(s *stopped) {
		from := memoryFolder(s.t)
		copiedTree(s.t, from+"/new", "new")
		copiedTree(s.t, from+"/old", "old")
		for name, o := range copyPolicies {
			to := filepath.Join(s.Dir(), name)
			durable := name != "never"
			o.Each = func(r holdfast.CopyResult) {
				if r.Durable != durable {
					s.t.Errorf("%s: durable %v, want %v", r.Destination, r.Durable, durable)
				}
			}
			s.after(func() { copyAll(s.t, o, to, from+"/old") })
			if durable {
				sameTrees(s.t, to, from+"/old", false)
			}
			s.after(func() { copyAll(s.t, o, to, from+"/new") })
			if durable {
				sameTrees(s.t, to, from+"/new", false)
			} else if n := namesIn(to + "/3"); n > 0 && len(contentOf(s.t, to+"/3/3")) > 3 {
				s.t.Error("what was never synced is there: the file system was not stopped")
			}
		}
		for seed := range uint64(4) {
			s.stopInBetween(rand.New(rand.NewPCG(seed, 1)), from)
		}
	})
}

// copiedTree makes 120 files, each of its name and the text.
func copiedTree(t *testing.T, folder, text string) {
	t.Helper()
	for i := range 6 {
		for j := range 20 {
			path := fmt.Sprintf("%s/%d/%d", folder, i, j)
			mustWrite(t, path, strings.Repeat(text, 1+j*100))
		}
		if err := os.Symlink(text, fmt.Sprintf("%s/%d/link", folder, i)); err != nil {
			t.Fatal(err)
		}
	}
}

// stopInBetween stops the file system while an atomic copy is made over an older one.
func (s *stopped) stopInBetween(r *rand.Rand, from string) {
	to := filepath.Join(s.Dir(), fmt.Sprintf("between%d", r.Uint32()))
	atomic := holdfast.CopyOptions{Atomic: true}
	copyAll(s.t, atomic, to, from+"/old")
	var all sync.WaitGroup
	all.Go(func() {
		holdfast.CopyAll(context.Background(), pairs(to, from+"/new"), atomic)
	})
	for range r.IntN(20_000) {
		os.Lstat(to)
	}
	s.stop()
	all.Wait()
	s.again()
	filepath.WalkDir(from+"/new", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name := strings.TrimPrefix(path, from+"/new")
		has := string(contentOf(s.t, to+name))
		if has != string(contentOf(s.t, path)) && has != string(contentOf(s.t, from+"/old"+name)) {
			s.t.Errorf("%s is neither old nor new: %d bytes", name, len(has))
		}
		return nil
	})
}
