//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

func pathsIn(dir string, n int) (paths []string) {
	for i := range n {
		paths = append(paths, filepath.Join(dir, strconv.Itoa(i)))
	}
	return paths
}

func TestOneMessageGoesToAllFiles(t *testing.T) {
	dir := t.TempDir()
	paths := pathsIn(dir, 20)
	f := realFiles(t, files.Options{})
	for range 2 {
		if r, err := f.WriteEach(t.Context(), paths, []byte("hello\n"), files.Append); err != nil || r.Len() != len(paths) {
			t.Fatal(r, err)
		}
	}
	for _, path := range paths {
		if got, err := os.ReadFile(path); string(got) != "hello\nhello\n" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// TestEveryFileOfAnEndedCallIsAccountedFor: files that were never asked for are untouched.
func TestEveryFileOfAnEndedCallIsAccountedFor(t *testing.T) {
	cause := errors.New("enough")
	check := func(end func(cancel context.CancelCauseFunc), f *files.Set, why error) {
		t.Helper()
		dir := t.TempDir()
		paths := pathsIn(dir, 1000)
		ctx, cancel := context.WithCancelCause(t.Context())
		end(cancel)
		r, err := f.WriteEach(ctx, paths, []byte("hello\n"), files.Create)
		totals := r.Totals()
		if !errors.Is(err, why) || r.Len() != len(paths) || totals.Files != len(paths) || totals.Failed == 0 {
			t.Fatalf("%v: %v", err, totals)
		}
		for i, result := range r.All() {
			_, missing := os.Stat(paths[i])
			if result.Path != paths[i] || (result.Err == nil) != (missing == nil) || result.Err != nil && (!errors.Is(result.Err, why) || result.Attempts != 0 || result.Outcome != holdfast.OutcomeUntouched) {
				t.Fatalf("%d: %+v, on the disk: %v", i, result, missing)
			}
		}
	}
	f := realFiles(t, files.Options{})
	check(func(cancel context.CancelCauseFunc) { cancel(cause) }, f, cause)
	var opens endsAtOpen
	opened := realFiles(t, files.Options{Logger: slog.New(&opens)})
	check(func(cancel context.CancelCauseFunc) { opens.end = func() { cancel(cause) } }, opened, cause)
	closed, err := files.New(files.Options{})
	if err = errors.Join(err, closed.Close()); err != nil {
		t.Fatal(err)
	}
	check(func(context.CancelCauseFunc) {}, closed, os.ErrClosed)
}

// TestTheCallersOwnFileIsWrittenAndStaysOpen where its descriptor stands.
func TestTheCallersOwnFileIsWrittenAndStaysOpen(t *testing.T) {
	check := func(policy holdfast.Policy, outcome holdfast.Outcome) {
		t.Helper()
		dir := t.TempDir()
		f := realFiles(t, files.Options{Policy: policy})
		var own []*os.File
		for _, path := range pathsIn(dir, 3) {
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.WriteString("mine, "); err != nil {
				t.Fatal(err)
			}
			own = append(own, file)
		}
		r, err := f.WriteAll(t.Context(), func(yield func(files.Write) bool) {
			for _, file := range own {
				if !yield(files.Write{File: file, Data: []byte("ours")}) {
					return
				}
			}
			yield(files.Write{Path: filepath.Join(dir, "path"), Data: []byte("ours")})
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, file := range own {
			if result := r.At(i); result.Outcome != outcome || result.Path != file.Name() || result.Bytes != 4 || result.Attempts != 1 {
				t.Errorf("%v: %+v", policy, result)
			}
			if _, err := file.WriteString(", mine"); err != nil {
				t.Error(err)
			}
			if got, err := os.ReadFile(file.Name()); string(got) != "mine, ours, mine" {
				t.Errorf("%q, %v", got, err)
			}
		}
	}
	check(holdfast.Policy{}, holdfast.OutcomeWritten)
	check(holdfast.Durable(), holdfast.OutcomeDurable)

	// A pipe can't be synced: that the policy syncs the file is seen there.
	if runtime.GOOS == "linux" {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		defer write.Close()
		r, err := realFiles(t, files.Options{Policy: holdfast.Durable()}).WriteAll(t.Context(), slices.Values([]files.Write{{File: write, Data: []byte("x")}}))
		if result := r.At(0); !errors.Is(err, syscall.EINVAL) || result.Outcome != holdfast.OutcomeUncertain || result.Bytes != 1 {
			t.Errorf("%+v, %v", result, err)
		}
	}

	f := realFiles(t, files.Options{})
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(w files.Write, want string) {
		t.Helper()
		r, err := f.WriteAll(t.Context(), slices.Values([]files.Write{w}))
		if err == nil || !strings.Contains(err.Error(), want) || r.At(0).Outcome != holdfast.OutcomeUntouched {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, mode := range []files.Mode{files.Truncate, files.Replace} {
		refused(files.Write{File: file, Mode: mode}, "is of a path")
	}
	file.Close()
	refused(files.Write{File: file, Data: []byte("x")}, "closed")
}

// events collects what a Set logs, as "LEVEL message".
type events struct {
	mu  sync.Mutex
	all []string
}

// endsAtOpen ends a call's context when the first descriptor is opened.
type endsAtOpen struct {
	events
	end  func()
	once sync.Once
}

func (e *endsAtOpen) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "open" {
		e.once.Do(e.end)
	}
	return nil
}

func (e *events) Enabled(context.Context, slog.Level) bool { return true }
func (e *events) WithAttrs([]slog.Attr) slog.Handler       { return e }
func (e *events) WithGroup(string) slog.Handler            { return e }

func (e *events) Handle(_ context.Context, r slog.Record) error {
	text := fmt.Sprintf("%v %s", r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "files" || a.Key == "path" && !strings.HasSuffix(a.Value.String(), string(filepath.Separator)) {
			text += " " + filepath.Base(a.Value.String())
		}
		return true
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, text)
	return nil
}

func TestLoggerGetsOpensEvictionsAndBatches(t *testing.T) {
	var seen events
	dir := filepath.Join(t.TempDir(), "dir") // before the Set, which is closed first: Windows removes no file that is open
	f := realFiles(t, files.Options{Policy: holdfast.Durable(), Handles: 5, Batch: 3, Logger: slog.New(&seen)})
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if r, err := f.WriteEach(t.Context(), pathsIn(dir, 8), []byte("x"), files.Create); err != nil {
		t.Fatal(r, err)
	}
	for _, path := range pathsIn(dir, 8) {
		if err := f.Append(t.Context(), path, []byte("y")); err != nil {
			t.Fatal(err)
		}
	}
	count := func(text string) (n int) {
		for _, e := range seen.all {
			if e == text {
				n++
			}
		}
		return n
	}
	if count("DEBUG batch 3") != 2 || count("DEBUG batch 2") != 1 {
		t.Errorf("8 files in batches of 3: %q", seen.all)
	}
	s := f.Stats()
	opens, evictions := 0, 0
	for _, e := range seen.all {
		if strings.HasPrefix(e, "DEBUG open ") {
			opens++
		}
		if strings.HasPrefix(e, "DEBUG evict ") {
			evictions++
		}
	}
	if int64(opens) != s.Misses || int64(evictions) != s.Evictions || evictions == 0 || count("DEBUG open 7") != 1 || count("DEBUG open dir") == 0 {
		t.Errorf("%d opens, %d evictions in %q; %+v", opens, evictions, seen.all, s)
	}
}

func TestLoggerGetsEachPauseBeforeARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := replacedLink(t)
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Times: 2, Err: syscall.ENOSPC})
		var seen events
		f := filesOn(t, d, files.Options{Logger: slog.New(&seen)})
		if r, err := f.WriteFile(t.Context(), "logs/new", []byte("x"), files.Create); err != nil {
			t.Fatal(r, err)
		}
		if n := len(slices.DeleteFunc(seen.all, func(e string) bool { return e != "WARN retry new" })); n != 2 || f.Stats().Retries != 2 {
			t.Errorf("%d pauses are logged of %+v", n, f.Stats())
		}
	})
}

func TestTotalsHaveTheirRates(t *testing.T) {
	check := func(totals files.Totals, want string) {
		t.Helper()
		if got := totals.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check(files.Totals{}, "no files")
	check(files.Totals{Files: 5000, Written: 489, Untouched: 4511, Failed: 4511, Bytes: 5868, Attempts: 489},
		"489 of 5000 files succeeded (9.8 %), 4511 failed (90.2 %): 489 written, 4511 untouched; 5868 bytes, 489 attempts")
	check(files.Totals{Files: 100_000, Durable: 99_999, Uncertain: 1, Failed: 1}, "99999 of 100000 files succeeded (99.9 %), 1 failed (0.1 %): 99999 durable, 1 uncertain; 0 bytes, 0 attempts")

	paths := pathsIn(filepath.Join(t.TempDir(), "none"), 12)
	r, _ := realFiles(t, files.Options{}).WriteEach(t.Context(), paths, nil, files.Append)
	lines := strings.Split(r.String(), "\n")
	if len(lines) != 12 || lines[0] != r.Totals().String() || lines[11] != "and 2 more" || !strings.Contains(lines[1], paths[0]) {
		t.Errorf("%q", lines)
	}
}
