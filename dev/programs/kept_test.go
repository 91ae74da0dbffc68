package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	containerd "github.com/containerd/continuity/fs"
	"github.com/hashicorp/raft"

	"github.com/holdfast-go/holdfast"
	forraft "github.com/holdfast-go/holdfast/adapters/raft"
	"github.com/holdfast-go/holdfast/wal"
)

// TestCopyDirKeepsWhatContainerdKeeps: contents, permissions, times, links and hard links. Times of directories, which containerd's
// copies of their files change again, are kept too.
func TestCopyDirKeepsWhatContainerdKeeps(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	at := time.Unix(1e9, 123456789)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(source, "d"), 0o750))
	must(os.WriteFile(filepath.Join(source, "d", "f"), []byte("text"), 0o600))
	must(os.Chmod(filepath.Join(source, "d", "f"), 0o4711))
	must(os.Link(filepath.Join(source, "d", "f"), filepath.Join(source, "same")))
	must(os.Symlink("d/f", filepath.Join(source, "link")))
	must(os.Chtimes(filepath.Join(source, "d", "f"), at, at))
	must(os.Chtimes(filepath.Join(source, "d"), at, at))
	var left [2]string
	for i, copyDir := range []func(dst, src string) error{func(dst, src string) error { return containerd.CopyDir(dst, src) }, CopyDir} {
		to := filepath.Join(dir, fmt.Sprint("copy", i))
		must(copyDir(to, source))
		must(filepath.WalkDir(to, func(name string, d fs.DirEntry, err error) error {
			if err != nil || name == to {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			left[i] += fmt.Sprintf("%s %v", strings.TrimPrefix(name, to), info.Mode())
			if d.Type() == fs.ModeSymlink {
				target, err := os.Readlink(name)
				left[i] += " to " + target + "\n"
				return err
			}
			if d.IsDir() {
				left[i] += "\n"
				if i == 1 && !info.ModTime().Equal(at) {
					t.Errorf("%s has the time %v", name, info.ModTime())
				}
				return nil
			}
			text, err := os.ReadFile(name)
			left[i] += fmt.Sprintf(" %q, %d names at %d\n", text, info.Sys().(*syscall.Stat_t).Nlink, info.ModTime().UnixNano())
			return err
		}))
	}
	if left[0] != left[1] || !strings.Contains(left[1], "2 names at 1000000000123456789") {
		t.Errorf("containerd's:\n%s\nours:\n%s", left[0], left[1])
	}
}

// TestArmsGiveTheSamePermissions to a new file, and leave those of one that is replaced.
func TestArmsGiveTheSamePermissions(t *testing.T) {
	for name, of := range map[string]struct {
		arms [2]func(place) (*use, error)
		file func(dir string) string
		puts bool // an existing one is replaced too
	}{
		"moby":      {[2]func(place) (*use, error){mobyBefore, mobyAfter}, func(dir string) string { return filepath.Join(dir, "state") }, false},
		"syncthing": {[2]func(place) (*use, error){syncthingBefore, syncthingAfter}, func(dir string) string { return filepath.Join(dir, "state") }, true},
		"restic":    {[2]func(place) (*use, error){resticBefore, resticAfter}, func(dir string) string { return savedFile(dir, 1) }, false},
	} {
		var modes [2][]fs.FileMode
		for i, open := range of.arms {
			dir := t.TempDir()
			u, err := open(place{dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			look := func() {
				t.Helper()
				info, err := os.Stat(of.file(dir))
				if err != nil {
					t.Fatal(name, err)
				}
				modes[i] = append(modes[i], info.Mode())
			}
			if err := u.put(1); err != nil {
				t.Fatal(name, err)
			}
			look()
			if of.puts {
				if err := os.Chmod(of.file(dir), 0o640); err != nil {
					t.Fatal(err)
				}
				if err := u.put(2); err != nil {
					t.Fatal(name, err)
				}
				look()
			}
			if err := u.close(); err != nil {
				t.Error(name, err)
			}
		}
		if !slices.Equal(modes[0], modes[1]) {
			t.Errorf("%s: before %v, after %v", name, modes[0], modes[1])
		}
	}
}

// TestACommandIsKeptByTwoOfThree: one server may have more, which was not acknowledged, and one less.
func TestACommandIsKeptByTwoOfThree(t *testing.T) {
	dir := t.TempDir()
	for i, commands := range [servers]int{2, 4, 1} {
		at := dir
		if i > 0 {
			at = nodeDir(dir, i)
		}
		if err := os.MkdirAll(at, 0o777); err != nil {
			t.Fatal(err)
		}
		store, err := forraft.Open(filepath.Join(at, "raft"), wal.Options{Policy: holdfast.Durable()})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.SetUint64([]byte("CurrentTerm"), 1); err != nil {
			t.Fatal(err)
		}
		for n := range commands {
			if err := store.StoreLog(&raft.Log{Index: uint64(n + 1), Type: raft.LogCommand, Data: fmt.Append(nil, "record ", n+1)}); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 { // it was put again behind a crash
			if err := store.StoreLog(&raft.Log{Index: 3, Type: raft.LogCommand, Data: []byte("record 2")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := keptByRaft(dir)
	if err != nil || strings.Join(kept, ", ") != "record 1, record 2" {
		t.Errorf("%q, %v", kept, err)
	}
	if err := os.RemoveAll(nodeDir(dir, 1)); err != nil {
		t.Fatal(err)
	}
	if kept, err = keptByRaft(dir); err != nil || len(kept) != 1 {
		t.Errorf("without the longest: %q, %v", kept, err)
	}
}

func TestSlowerRowsShowTheirCalls(t *testing.T) {
	row := func(name string, times ...float64) *measurement {
		return &measurement{Program: name, Before: figures{Time: []float64{100, 100}, ByName: map[string]spent{"fsync": {1, 5000}, "read": {0.01, 1}}},
			After: figures{Time: times, ByName: map[string]spent{"fsync": {2, 9000}, "openat": {4, 700}}}}
	}
	first, second := programs[0].name, programs[1].name
	text := slower(map[string]*measurement{first: row(first, 90, 200), second: row(second, 101, 200)})
	want := fmt.Sprintf("\n| %s: call | before | time | after | time |\n|---|--:|--:|--:|--:|\n| fsync | 1.0 | 5µs | 2.0 | 9µs |\n| openat | – | – | 4.0 | 700ns |\n", second)
	if !strings.HasSuffix(text, want) || strings.Contains(text, first) {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	if text := slower(map[string]*measurement{first: row(first, 90, 99)}); text != "" {
		t.Errorf("no row is slower:\n%s", text)
	}
}
