package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

func gogitBefore(at place) (*use, error) {
	s := filesystem.NewStorage(osfs.New(at.dir), cache.NewObjectLRUDefault())
	return useGoGit(s, none)
}

func gogitAfter(at place) (*use, error) {
	s, err := NewStorage(at.dir)
	if err != nil {
		return nil, err
	}
	return useGoGit(s, s.Close)
}

func syncedBefore(at place) (*use, error) {
	s := filesystem.NewStorage(eachSynced{osfs.New(at.dir)}, cache.NewObjectLRUDefault())
	return useGoGit(s, none)
}

func syncedAfter(at place) (*use, error) {
	s, err := NewStorage(at.dir)
	if err != nil {
		return nil, err
	}
	return useGoGit(s, s.Close)
}

// eachSynced syncs each temporary file when it is closed.
type eachSynced struct{ billy.Filesystem }

func (e eachSynced) TempFile(dir, prefix string) (billy.File, error) {
	f, err := e.Filesystem.TempFile(dir, prefix)
	if err != nil {
		return nil, err
	}
	return syncedFile{f, filepath.Join(e.Root(), f.Name())}, nil
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

const committedFiles = 50

// useGoGit makes a commit a record. Its tree is in memory.
func useGoGit(s storage.Storer, end func() error) (*use, error) {
	work := memfs.New()
	repository, err := git.Open(s, work)
	if errors.Is(err, git.ErrRepositoryNotExists) {
		repository, err = git.Init(s, work)
	}
	if err != nil {
		return nil, err
	}
	tree, err := repository.Worktree()
	if err != nil {
		return nil, err
	}
	return &use{close: end, put: func(n uint64) error {
		for i := range committedFiles {
			f, err := work.Create(fmt.Sprintf("d%d/f%d", i%10, i))
			if err != nil {
				return err
			}
			_, err = f.Write(fmt.Appendf(nil, "file %d\n%s", i, state(n)))
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
		if err := tree.AddWithOptions(&git.AddOptions{All: true}); err != nil {
			return err
		}
		who := &object.Signature{Name: "nobody", Email: "nobody@example.com", When: time.Unix(1e9, 0)}
		_, err := tree.Commit(fmt.Sprint("record ", n), &git.CommitOptions{Author: who})
		return err
	}}, nil
}

// keptCommits has the commits of the branch, each of whose files must be readable.
func keptCommits(dir string) (all []string, err error) {
	repository, err := git.Open(filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault()), memfs.New())
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	head, err := repository.Head()
	if err != nil {
		return nil, ignored(err, plumbing.ErrReferenceNotFound)
	}
	commits, err := repository.Log(&git.LogOptions{From: head.Hash()})
	if err != nil {
		return nil, err
	}
	err = commits.ForEach(func(c *object.Commit) error {
		all = append(all, c.Message)
		tree, err := c.Files()
		if err != nil {
			return err
		}
		found := 0
		err = tree.ForEach(func(f *object.File) error {
			found++
			r, err := f.Reader()
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, r)
			return errors.Join(err, r.Close())
		})
		if err == nil && found != committedFiles {
			err = fmt.Errorf("a commit has %d files", found)
		}
		return err
	})
	slices.Reverse(all)
	return all, err
}
