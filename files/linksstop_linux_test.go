//go:build go1.25

package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/stoptest"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// TestDurableThroughLinksSurvivesTheStopOfTheFileSystem writes by paths of one real file
// system to files of another, which is stopped then.
func TestDurableThroughLinksSurvivesTheStopOfTheFileSystem(t *testing.T) {
	stoptest.Each(t, func(s *stoptest.FileSystem) { stoppedFiles{s}.stopBehindLinks() })
}

func (s stoppedFiles) stopBehindLinks() {
	paths, err := volume.Make(s.T.Context(), s.T.TempDir(), stoptest.Kind(s.T, "ext4"), 64<<20)
	if err != nil {
		s.T.Skip(err)
	}
	defer func() {
		if err := paths.Close(); err != nil {
			s.T.Error(err)
		}
	}()
	for i, way := range []string{"link", "link to no file", "mount"} {
		for _, mode := range []files.Mode{files.Truncate, files.Append, files.Replace} {
			if way == "mount" && mode == files.Replace {
				continue // no other file may be given its name
			}
			s.behind(way, filepath.Join(paths.Dir(), fmt.Sprint("WriteAll", i, mode)), func(path string) error {
				f := s.files(holdfast.Durable())
				defer f.Close()
				_, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
					_ = yield(files.Write{Path: path, Data: []byte("new bytes"), Mode: mode}) &&
						yield(files.Write{Path: path + "-beside", Data: []byte("x"), Mode: files.Truncate})
				})
				return err
			})
		}
		s.behind(way, filepath.Join(paths.Dir(), fmt.Sprint("Set.Append", i)), func(path string) error {
			f := s.files(holdfast.Durable())
			defer f.Close()
			return f.Append(context.Background(), path, []byte("new bytes"))
		})
		s.behind(way, filepath.Join(paths.Dir(), fmt.Sprint("Append", i)), func(path string) error {
			w, err := holdfast.Append(path, holdfast.Durable())
			if err != nil {
				return err
			}
			defer w.Close()
			_, err = w.Write([]byte("new bytes"))
			return err
		})
	}
}

// behind writes by a path to a file of the file system that is stopped then.
func (s stoppedFiles) behind(way, path string, write func(path string) error) {
	s.T.Helper()
	target := filepath.Join(s.Dir(), filepath.Base(path))
	must := func(err error) {
		s.T.Helper()
		if err != nil {
			s.T.Fatal(err)
		}
	}
	if way != "link to no file" {
		must(os.WriteFile(target, []byte("old bytes "), 0o666))
	}
	if way == "mount" {
		must(os.WriteFile(path, nil, 0o666))
		must(unix.Mount(target, path, "", unix.MS_BIND, ""))
	} else {
		must(os.Symlink(target, path))
	}
	unix.Sync() // with little left to be written, batches are synced as a whole
	must(write(path))
	s.Stop()
	if way == "mount" {
		must(unix.Unmount(path, unix.MNT_DETACH))
	}
	s.Again()
	const want = "new bytes"
	if got, err := os.ReadFile(target); len(got) < len(want) || string(got[len(got)-len(want):]) != want {
		s.T.Errorf("%s: durable by way of a %s; after the stop it holds %q, %v", filepath.Base(path), way, got, err)
	}
}
