package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/provetest"
)

func TestMain(m *testing.M) {
	syscallfault.Launch()
	serve()
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

// plain is go-git's own storage.
func plain(dir string) *filesystem.Storage {
	return filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault())
}

// headOf returns the commit that a repository is at, and the text of a file in it.
func headOf(dir, file string) (*object.Commit, string, error) {
	repository, err := git.Open(plain(dir), memfs.New())
	if err != nil {
		return nil, "", err
	}
	head, err := repository.Head()
	if err != nil {
		return nil, "", err
	}
	at, err := repository.CommitObject(head.Hash())
	if err != nil {
		return nil, "", err
	}
	f, err := at.File(file)
	if err != nil {
		return nil, "", err
	}
	text, err := f.Contents()
	return at, text, err
}

// TestGoGitReadsWhatIsStored with its own storage, each object of it.
func TestGoGitReadsWhatIsStored(t *testing.T) {
	dir := t.TempDir()
	s, err := NewStorage(dir)
	if err != nil {
		t.Fatal(err)
	}
	u, err := useGoGit(s, none)
	if err == nil {
		err = u.put(1)
	}
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.Reference(plumbing.NewBranchReferenceName("master"))
	if err != nil {
		t.Fatal(err)
	}
	other := plumbing.NewHashReference(head.Name(), plumbing.NewHash("0123456789012345678901234567890123456789"))
	if err := s.CheckAndSetReference(head, other); !errors.Is(err, storage.ErrReferenceHasChanged) {
		t.Errorf("a reference that has changed: %v", err)
	}
	if err := s.CheckAndSetReference(head, head); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	at, text, err := headOf(dir, "d5/f15")
	if err != nil || len(text) == 0 {
		t.Fatal(err)
	}
	files, err := at.Files()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = files.ForEach(func(f *object.File) error {
		n++
		_, err := f.Contents()
		return err
	})
	if err != nil || n != committedFiles {
		t.Errorf("%d files, %v", n, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("temporary files are left: %q, %v", left, err)
	}
}

// TestACrashLeavesTheCommitThatWasAcknowledged, or a later one, and go-git reads it.
func TestACrashLeavesTheCommitThatWasAcknowledged(t *testing.T) {
	isolate.Once(t)
	provetest.Test(t, provetest.Workload{Write: keepCommitting, Read: committed, Synced: true, Time: 400 * time.Millisecond})
}

func keepCommitting(dir string, log *provetest.Log) error {
	s, err := NewStorage(dir)
	if err != nil {
		return err
	}
	defer s.Close() // what is stored is acknowledged by then
	work := memfs.New()
	repository, err := git.Open(s, work)
	if errors.Is(err, git.ErrRepositoryNotExists) {
		repository, err = git.Init(s, work)
	}
	if err != nil {
		return err
	}
	tree, err := repository.Worktree()
	if err != nil {
		return err
	}
	for {
		value := strconv.FormatInt(time.Now().UnixNano(), 36)
		log.Begin("head", value)
		for i := range 3 {
			f, err := work.Create(fmt.Sprint("f", i))
			if err != nil {
				return err
			}
			if _, err := io.WriteString(f, value); err != nil {
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
		}
		if err := tree.AddWithOptions(&git.AddOptions{All: true}); err != nil {
			return err
		}
		who := &object.Signature{Name: "nobody", Email: "nobody@example.com", When: time.Unix(1e9, 0)}
		if _, err := tree.Commit(value, &git.CommitOptions{Author: who}); err != nil {
			return err
		}
		log.Ack("head", value)
	}
}

func committed(dir string) (map[string]string, error) {
	at, text, err := headOf(dir, "f2")
	if errors.Is(err, git.ErrRepositoryNotExists) || errors.Is(err, plumbing.ErrReferenceNotFound) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	if at.Message != text {
		return nil, fmt.Errorf("the commit %q has the file of %q", at.Message, text)
	}
	return map[string]string{"head": text}, nil
}
