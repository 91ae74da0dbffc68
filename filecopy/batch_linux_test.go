//go:build go1.25

package filecopy_test

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

	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/internal/filetest"
	"github.com/holdfast-go/holdfast/internal/stoptest"
)

// TestDurableCopiesSurviveTheStopOfTheirFileSystem is
// TestDurableFilesSurviveTheStopOfTheirFileSystem for trees.
func TestDurableCopiesSurviveTheStopOfTheirFileSystem(t *testing.T) {
	stoptest.Each(t, func(s *stoptest.FileSystem) {
		from := filetest.MemoryDir(s.T)
		copiedTree(s.T, from+"/new", "new")
		copiedTree(s.T, from+"/old", "old")
		for name, o := range copyPolicies {
			to := filepath.Join(s.Dir(), name)
			durable := name != "never"
			o.Each = func(r filecopy.Result) {
				if r.Durable != durable {
					s.T.Errorf("%s: durable %v, want %v", r.Destination, r.Durable, durable)
				}
			}
			s.After(func() { copyAll(s.T, o, to, from+"/old") })
			if durable {
				sameTrees(s.T, to, from+"/old", false)
			}
			s.After(func() { copyAll(s.T, o, to, from+"/new") })
			if durable {
				sameTrees(s.T, to, from+"/new", false)
			} else if n := namesIn(to + "/3"); n > 0 && len(filetest.ContentOf(s.T, to+"/3/3")) > 3 {
				s.T.Error("what was never synced is there: the file system was not stopped")
			}
		}
		for seed := range uint64(3) {
			stopInBetween(s, rand.New(rand.NewPCG(seed, 1)), from)
		}
	})
}

// copiedTree makes 120 files, each of its name and the text.
func copiedTree(t *testing.T, dir, text string) {
	t.Helper()
	for i := range 6 {
		for j := range 20 {
			path := fmt.Sprintf("%s/%d/%d", dir, i, j)
			filetest.MustWrite(t, path, strings.Repeat(text, 1+j*100))
		}
		if err := os.Symlink(text, fmt.Sprintf("%s/%d/link", dir, i)); err != nil {
			t.Fatal(err)
		}
	}
}

// stopInBetween stops the file system while an atomic copy is made over an older one.
func stopInBetween(s *stoptest.FileSystem, r *rand.Rand, from string) {
	to := filepath.Join(s.Dir(), fmt.Sprintf("between%d", r.Uint32()))
	atomic := filecopy.Options{Atomic: true}
	copyAll(s.T, atomic, to, from+"/old")
	var all sync.WaitGroup
	all.Go(func() {
		filecopy.All(context.Background(), pairs(to, from+"/new"), atomic)
	})
	for range r.IntN(20_000) {
		os.Lstat(to)
	}
	s.Stop()
	all.Wait()
	s.Again()
	filepath.WalkDir(from+"/new", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name := strings.TrimPrefix(path, from+"/new")
		has := string(filetest.ContentOf(s.T, to+name))
		if has != string(filetest.ContentOf(s.T, path)) && has != string(filetest.ContentOf(s.T, from+"/old"+name)) {
			s.T.Errorf("%s is neither old nor new: %d bytes", name, len(has))
		}
		return nil
	})
}
