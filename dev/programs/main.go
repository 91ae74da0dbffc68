// Command programs puts the library under programs of others, by their public interfaces, and measures
// them with it and without.
//
//	go -C dev/programs run . -dir DIR -rounds 9
//
// It stores the files of a commit by go-git: as go-git does it, which syncs nothing; with an fsync of each
// file; and with [Storage], whose objects are durable together before each reference. The rounds run the
// three in turn, each in a repository of its own. Times are of Add and Commit together.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

func main() {
	dir := flag.String("dir", ".", "where the repositories are made")
	rounds := flag.Int("rounds", 9, "how often each is measured")
	count := flag.Int("files", 1500, "files of a commit")
	flag.Parse()
	if err := measure(*dir, *rounds, *count); err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}

// An arm opens a storage of a .git directory; end ends its use.
type arm struct {
	name string
	open func(dir string) (s storage.Storer, end func() error, err error)
}

func none() error { return nil }

func arms() []arm {
	return []arm{
		{"go-git, nothing synced", func(dir string) (storage.Storer, func() error, error) {
			return filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault()), none, nil
		}},
		{"go-git, each file synced", func(dir string) (storage.Storer, func() error, error) {
			return filesystem.NewStorage(eachSynced{osfs.New(dir)}, cache.NewObjectLRUDefault()), none, nil
		}},
		{"holdfast, a barrier before each reference", func(dir string) (storage.Storer, func() error, error) {
			s, err := NewStorage(dir)
			if err != nil {
				return nil, nil, err
			}
			return s, s.Close, nil
		}},
	}
}

// eachSynced syncs each temporary file when it is closed.
type eachSynced struct{ billy.Filesystem }

func (e eachSynced) TempFile(dir, prefix string) (billy.File, error) {
	f, err := e.Filesystem.TempFile(dir, prefix)
	return syncedFile{f, filepath.Join(e.Root(), f.Name())}, err
}

type syncedFile struct {
	billy.File
	path string
}

func (f syncedFile) Close() error {
	own, err := os.Open(f.path)
	if err != nil {
		return err
	}
	return errors.Join(own.Sync(), own.Close(), f.File.Close())
}

// commit stores a commit of some files, and returns how long that took.
func commit(s storage.Storer, count int) (time.Duration, error) {
	work := memfs.New()
	repository, err := git.Init(s, work)
	if err != nil {
		return 0, err
	}
	for i := range count {
		f, err := work.Create(fmt.Sprintf("d%d/f%d", i%30, i))
		if err != nil {
			return 0, err
		}
		_, err = f.Write(bytes.Repeat(fmt.Appendf(nil, "line %d of a file\n", i), 250+i%250))
		if err := errors.Join(err, f.Close()); err != nil {
			return 0, err
		}
	}
	tree, err := repository.Worktree()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := tree.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		return 0, err
	}
	who := &object.Signature{Name: "nobody", Email: "nobody@example.com", When: time.Unix(1e9, 0)}
	_, err = tree.Commit("all of it", &git.CommitOptions{Author: who})
	return time.Since(began), err
}

func measure(parent string, rounds, count int) error {
	dir, err := os.MkdirTemp(parent, "programs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := arms()
	times := make([][]time.Duration, len(all))
	for round := range rounds {
		for i, a := range all {
			s, end, err := a.open(filepath.Join(dir, fmt.Sprintf("%d-%d", round, i)))
			if err != nil {
				return err
			}
			took, err := commit(s, count)
			if err := errors.Join(err, end()); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			times[i] = append(times[i], took)
		}
	}
	fmt.Printf("add and commit of %d files of 4 to 10 KB, %d rounds; medians, and the range of the ratio to the first\n\n| | time | ratio |\n|---|--:|--:|\n", count, rounds)
	for i, a := range all {
		var ratios []float64
		for round, t := range times[i] {
			ratios = append(ratios, float64(t)/float64(times[0][round]))
		}
		slices.Sort(ratios)
		sorted := slices.Clone(times[i])
		slices.Sort(sorted)
		fmt.Printf("| %s | %v | %.2f (%.2f–%.2f) |\n", a.name, sorted[rounds/2].Round(time.Millisecond), ratios[rounds/2], ratios[0], ratios[rounds-1])
	}
	return nil
}
