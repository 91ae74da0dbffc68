package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	containerd "github.com/containerd/continuity/fs"
	"github.com/google/renameio/v2"
	"github.com/moby/sys/atomicwriter"
	"github.com/natefinch/atomic"
	"github.com/otiai10/copy"
	"github.com/syncthing/syncthing/lib/osutil"

	"github.com/holdfast-go/holdfast"
	forrenameio "github.com/holdfast-go/holdfast/adapters/renameio"
	"github.com/holdfast-go/holdfast/filecopy"
	"github.com/holdfast-go/holdfast/files"
)

// upTo is all records up to the one that a file which is replaced has.
func upTo(text []byte) ([]string, error) {
	words := number.FindSubmatch(text)
	if words == nil {
		return nil, fmt.Errorf("a file has %q, which is no record", text)
	}
	last, err := strconv.Atoi(string(words[1]))
	all := make([]string, last)
	for i := range all {
		all[i] = fmt.Sprint("record ", i+1)
	}
	return all, err
}

// keptState is of a program that replaces one file.
func keptState(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "state"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return upTo(text)
}

func state(n uint64) []byte {
	return append(fmt.Appendf(nil, "record %d\n", n), bytes.Repeat([]byte("a line of the state\n"), 50)...)
}

func none() error { return nil }

func renameioBefore(at place) (*use, error) {
	name := filepath.Join(at.dir, "state")
	return &use{close: none, put: func(n uint64) error {
		return renameio.WriteFile(name, state(n), 0o644)
	}}, nil
}

func renameioAfter(at place) (*use, error) {
	name := filepath.Join(at.dir, "state")
	return &use{close: none, put: func(n uint64) error {
		return forrenameio.WriteFile(name, state(n), 0o644)
	}}, nil
}

func mobyBefore(at place) (*use, error) {
	name := filepath.Join(at.dir, "state")
	return &use{close: none, put: func(n uint64) error {
		return atomicwriter.WriteFile(name, state(n), 0o644)
	}}, nil
}

func mobyAfter(at place) (*use, error) {
	name := filepath.Join(at.dir, "state")
	return &use{close: none, put: func(n uint64) error {
		return files.WriteFile(name, state(n), 0o644)
	}}, nil
}

func syncthingBefore(at place) (*use, error) {
	name := filepath.Join(at.dir, "state")
	return &use{close: none, put: func(n uint64) error {
		w, err := osutil.CreateAtomic(name)
		if err != nil {
			return err
		}
		_, _ = w.Write(state(n)) // Close returns its error too
		return w.Close()
	}}, nil
}

func syncthingAfter(at place) (*use, error) {
	name := filepath.Join(at.dir, "state")
	set, err := files.New(files.Options{Policy: holdfast.Durable(), Perm: 0o600})
	if err != nil {
		return nil, err
	}
	return &use{close: set.Close, put: func(n uint64) error {
		w, err := set.Pending(name)
		if err != nil {
			return err
		}
		_, _ = w.Write(state(n)) // Commit returns its error too
		return w.Commit(context.Background())
	}}, nil
}

func resticBefore(at place) (*use, error) {
	for i := range savedDirs { // by restic init
		if err := os.MkdirAll(savedDir(at.dir, i), 0o700); err != nil {
			return nil, err
		}
	}
	return useRestic(at.dir, saveAsRestic, none), nil
}

func resticAfter(at place) (*use, error) {
	set, err := files.New(files.Options{Policy: holdfast.Durable(), Perm: 0o400, MkdirAll: true})
	if err != nil {
		return nil, err
	}
	save := func(name string, data []byte) error {
		_, err := set.WriteFile(context.Background(), name, data, files.Replace)
		return err
	}
	return useRestic(at.dir, save, set.Close), nil
}

func useRestic(dir string, save func(name string, data []byte) error, end func() error) *use {
	return &use{close: end, put: func(n uint64) error { return save(savedFile(dir, n), state(n)) }}
}

// saveAsRestic does what restic's local backend does with a file, but for the reservation of its room: that package is internal.
func saveAsRestic(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+"-tmp-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return err
	}
	return os.Chmod(name, 0o400)
}

// savedDirs is how many directories the files of a repository of restic are in; it has 256.
const savedDirs = 16

func savedDir(dir string, i int) string { return filepath.Join(dir, "data", fmt.Sprintf("%02x", i)) }

func savedFile(dir string, n uint64) string {
	return filepath.Join(savedDir(dir, int(n%savedDirs)), fmt.Sprint("pack", n))
}

// keptSaved has the files up to the first that is not there. Each must be whole.
func keptSaved(dir string) (all []string, err error) {
	for n := uint64(1); ; n++ {
		text, err := os.ReadFile(savedFile(dir, n))
		if err != nil {
			return all, ignored(err, fs.ErrNotExist)
		}
		if !bytes.Equal(text, state(n)) {
			return nil, fmt.Errorf("file %d is not whole: it has %d bytes", n, len(text))
		}
		all = append(all, fmt.Sprint("record ", n))
	}
}

// A record of the exporter is a generation of all of its files.
const exported = 100

func exportedFile(dir string, i int) string {
	return filepath.Join(dir, fmt.Sprint("tenant", i%10), fmt.Sprint("report", i))
}

// keptExports has the generations that each file has, or a later one.
func keptExports(dir string) (least []string, err error) {
	for i := range exported {
		text, err := os.ReadFile(exportedFile(dir, i))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all, err := upTo(text)
		if err != nil {
			return nil, err
		}
		if i == 0 || len(all) < len(least) {
			least = all
		}
	}
	return least, nil
}

func exportBefore(at place) (*use, error) {
	for i := range exported {
		if err := os.MkdirAll(filepath.Dir(exportedFile(at.dir, i)), 0o777); err != nil {
			return nil, err
		}
	}
	return &use{close: none, put: func(n uint64) error {
		for i := range exported {
			if err := atomic.WriteFile(exportedFile(at.dir, i), bytes.NewReader(state(n))); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

func exportAfter(at place) (*use, error) {
	set, err := files.New(files.Options{Policy: holdfast.Durable(), MkdirAll: true})
	if err != nil {
		return nil, err
	}
	return &use{close: set.Close, put: func(n uint64) error {
		b := set.Begin()
		for i := range exported {
			if err := b.Write(exportedFile(at.dir, i), state(n)); err != nil {
				return err
			}
		}
		_, err := b.Commit(context.Background())
		return err
	}}, nil
}

func copyBefore(at place) (*use, error) {
	return &use{close: none, put: func(n uint64) error {
		to := filepath.Join(at.dir, fmt.Sprint("copy", n))
		return copy.Copy(at.source, to, copy.Options{Sync: true, PreserveTimes: true})
	}}, nil
}

func copyAfter(at place) (*use, error) {
	return &use{close: none, put: func(n uint64) error {
		to := filepath.Join(at.dir, fmt.Sprint("copy", n))
		_, err := filecopy.All(context.Background(), maps.All(map[string]string{to: at.source}), filecopy.Options{Policy: holdfast.Durable()})
		return err
	}}, nil
}

func containerdBefore(at place) (*use, error) {
	return &use{close: none, put: func(n uint64) error {
		to := filepath.Join(at.dir, fmt.Sprint("copy", n))
		return containerd.CopyDir(to, at.source)
	}}, nil
}

func containerdAfter(at place) (*use, error) {
	return &use{close: none, put: func(n uint64) error {
		to := filepath.Join(at.dir, fmt.Sprint("copy", n))
		return CopyDir(to, at.source)
	}}, nil
}

// CopyDir is containerd's. It keeps owners, attributes, times and hard links too.
func CopyDir(dst, src string) error {
	_, err := filecopy.All(context.Background(), maps.All(map[string]string{dst: src}), filecopy.Options{Policy: holdfast.Durable(), Archive: true})
	return err
}

// keptCopies has the copies that are whole.
func keptCopies(dir string) (all []string, err error) {
	for n := 1; ; n++ {
		for i := range sourceFiles {
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("copy", n), fmt.Sprint("d", i%10), fmt.Sprint("f", i)))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if !bytes.Equal(text, sourceText(i)) {
				return all, nil
			}
		}
		all = append(all, fmt.Sprint("record ", n))
	}
}
