//go:build go1.25

package provetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/provetest"
	"github.com/holdfast-go/holdfast/rotate"
	"github.com/holdfast-go/holdfast/wal"
)

// numbered is a workload of goroutines that put 1, 2, 3 and so on under a key of their own. start opens the code, and returns what
// puts. found says what is there.
func numbered(start func(dir string, log *provetest.Log) (put func(key string, n int) error, err error), found func(dir string) (map[string]int, error)) provetest.Workload {
	return provetest.Workload{
		Write: func(dir string, log *provetest.Log) error {
			before, err := found(dir)
			if err != nil {
				return err
			}
			put, err := start(dir, log)
			if err != nil {
				return err
			}
			errs := make([]error, 3)
			var group sync.WaitGroup
			for i := range errs {
				key := fmt.Sprint("k", i)
				group.Go(func() {
					for n := before[key] + 1; errs[i] == nil; n++ {
						log.Begin(key, strconv.Itoa(n))
						if errs[i] = put(key, n); errs[i] == nil {
							log.Ack(key, strconv.Itoa(n))
						}
					}
				})
			}
			group.Wait()
			return errors.Join(errs...)
		},
		Read: func(dir string) (map[string]string, error) {
			is, err := found(dir)
			all := map[string]string{}
			for key, n := range is {
				all[key] = strconv.Itoa(n)
			}
			return all, err
		},
		Synced: true,
		Time:   300 * time.Millisecond,
	}
}

// numbers adds what lines "key n" say, up to one that is not whole.
func numbers(all map[string]int, text []byte) {
	for line := range bytes.Lines(text) {
		key, number, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if n, err := strconv.Atoi(number); err == nil && strings.HasPrefix(key, "k") && len(key) == 2 && line[len(line)-1] == '\n' && n > all[key] {
			all[key] = n
		}
	}
}

// inFiles parses the lines in the files of a directory.
func inFiles(dir string) (map[string]int, error) {
	all := map[string]int{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // a temporary of a crash, which is removed later
			continue
		}
		text, readErr := os.ReadFile(filepath.Join(dir, e.Name()))
		if !errors.Is(readErr, os.ErrNotExist) { // removed meanwhile
			err = errors.Join(err, readErr)
		}
		numbers(all, text)
	}
	return all, err
}

func once(t *testing.T) {
	isolate.Once(t)
	if isolate.RaceEnabled {
		t.Skip("these processes are judged, and not their races")
	}
}

func TestWriterIsProven(t *testing.T) {
	once(t)
	provetest.Test(t, numbered(func(dir string, _ *provetest.Log) (func(string, int) error, error) {
		name := filepath.Join(dir, "log")
		if text, err := os.ReadFile(name); err == nil { // a crash may leave a part of a line
			if err := os.Truncate(name, int64(bytes.LastIndexByte(text, '\n')+1)); err != nil {
				return nil, err
			}
		}
		w, err := holdfast.Append(name, holdfast.Durable())
		return func(key string, n int) error {
			_, err := fmt.Fprintf(w, "%s %d\n", key, n)
			return err
		}, err
	}, inFiles))
}

func TestFilesAreProven(t *testing.T) {
	once(t)
	provetest.Test(t, numbered(func(dir string, _ *provetest.Log) (func(string, int) error, error) {
		set, err := files.New(files.Options{Policy: holdfast.Durable()})
		return func(key string, n int) error {
			_, err := set.WriteFile(context.Background(), filepath.Join(dir, key), fmt.Appendf(nil, "%s %d\n", key, n), files.Replace)
			return err
		}, err
	}, inFiles))
}

func TestRotateIsProven(t *testing.T) {
	once(t)
	provetest.Test(t, numbered(func(dir string, _ *provetest.Log) (func(string, int) error, error) {
		f, err := rotate.Open(filepath.Join(dir, "log"), rotate.Options{MaxSize: 2 * holdfast.KiB, MaxBackups: 4, Policy: holdfast.Durable()})
		return func(key string, n int) error {
			_, err := fmt.Fprintf(f, "%s %d\n", key, n)
			return err
		}, err
	}, inFiles))
}

// TestWalIsProven also holds that what Open has found is durable.
func TestWalIsProven(t *testing.T) {
	once(t)
	found := func(dir string) (map[string]int, error) {
		all := map[string]int{}
		if _, err := os.Stat(filepath.Join(dir, "wal")); err != nil {
			return all, nil // before the first Open
		}
		var bad error
		_, err := wal.Scan(filepath.Join(dir, "wal"), func(r wal.Record, damage *wal.DamageError) bool {
			if damage != nil {
				bad = damage
				return false
			}
			numbers(all, r.Data)
			return true
		})
		return all, errors.Join(err, bad)
	}
	provetest.Test(t, numbered(func(dir string, log *provetest.Log) (func(string, int) error, error) {
		l, _, err := wal.Open(filepath.Join(dir, "wal"), wal.Options{Policy: holdfast.Durable(), SegmentSize: 16 * holdfast.KiB})
		if err != nil {
			return nil, err
		}
		is := map[string]int{}
		for r, err := range l.Records(l.First()) {
			if err != nil {
				return nil, err
			}
			numbers(is, r.Data)
		}
		for key, n := range is {
			log.Ack(key, strconv.Itoa(n))
		}
		return func(key string, n int) error {
			last, err := l.Append(fmt.Appendf(nil, "%s %d\n", key, n))
			if err == nil && last%100 == 0 {
				err = l.TruncateBefore(last - 50)
			}
			return err
		}, err
	}, found))
}
