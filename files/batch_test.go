//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/temporary"
)

func TestLastOfOnePathWins(t *testing.T) {
	for _, p := range wholePolicies {
		for _, workers := range []int{1, 2, 8} {
			d := fault.NewDisk()
			d.SetSyncsAll("/", workers != 2)
			f := newSet(d, files.Options{Policy: p, Workers: workers, Handles: 16})
			var writes []files.Write
			want := map[string]string{}
			for i := range 400 {
				path, text := fmt.Sprintf("/f%d", i%7), fmt.Sprintf("%d.", i)
				mode := []files.Mode{files.Replace, files.Append, files.Truncate}[(i/7)%3]
				writes = append(writes, files.Write{Path: path, Data: []byte(text), Mode: mode})
				if mode == files.Append {
					text = want[path] + text
				}
				want[path] = text
			}
			if _, err := f.WriteAll(context.Background(), one(writes...)); err != nil {
				t.Fatal(err)
			}
			f.Close()
			for path, text := range want {
				if data, _ := d.ReadFile(path); string(data) != text {
					t.Errorf("%d workers, %v: %s holds %q, want %q", workers, p, path, data, text)
				}
			}
			if wrong := d.Violations(); len(wrong) > 0 {
				t.Error(wrong)
			}
		}
	}
}

func TestTwoNamesOfOneFileDoNotMixTheirBytes(t *testing.T) {
	d := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Take: 3}) // every write is cut short
	d.MkdirAll("a")
	d.WriteFile("a/file", nil, 0o644)
	d.Link("a/file", "hard")
	d.Symlink("a/file", "soft")
	f := newSet(d, files.Options{Workers: 8})
	var writes []files.Write
	for i := range 200 {
		path := []string{"a/file", "hard", "soft", "a/../a/file"}[i%4]
		writes = append(writes, files.Write{Path: path, Data: fmt.Appendf(nil, "<%07d>", i), Mode: files.Append})
	}
	if _, err := f.WriteAll(context.Background(), one(writes...)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	data, _ := d.ReadFile("a/file")
	for i := range 200 {
		if n := strings.Count(string(data), fmt.Sprintf("<%07d>", i)); n != 1 {
			t.Errorf("record %d is there %d times", i, n)
		}
	}
	if wrong := d.Violations(); len(wrong) > 0 || len(data) != 200*9 {
		t.Error(len(data), wrong)
	}
}

func TestManyBatchesAtOnceKeepOrderAndBounds(t *testing.T) {
	for _, p := range wholePolicies {
		for _, handles := range []int{4, 16} {
			d := fault.NewDisk()
			d.SetCap(handles)
			d.SetDescriptors(handles)
			f := newSet(d, files.Options{Policy: p, Workers: 3, Handles: handles, MkdirAll: true})
			var all sync.WaitGroup
			for g := range 100 {
				all.Go(func() {
					results, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
						for i := range 12 {
							path := fmt.Sprintf("/d%d/f%d", i%3, (g*i)%5)
							mode := []files.Mode{files.Replace, files.Truncate, files.Append}[(g+i)%3]
							if i == 7 {
								path, mode = fmt.Sprintf("/own/%d", g), files.Create
							}
							if !yield(files.Write{Path: path, Data: fmt.Appendf(nil, "%d/%d;", g, i), Mode: mode}) {
								return
							}
						}
					})
					if err != nil || results.Len() != 12 {
						t.Errorf("%d: %v", results.Len(), err)
					}
				})
			}
			all.Wait()
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if wrong := d.Violations(); len(wrong) > 0 || d.Open() != 0 {
				t.Error(d.Open(), wrong)
			}
			for g := range 100 {
				if data, _ := d.ReadFile(fmt.Sprintf("/own/%d", g)); string(data) != fmt.Sprintf("%d/7;", g) {
					t.Errorf("%d: %q", g, data)
				}
			}
		}
	}
}

func TestIteratorIsNotAskedForMoreThanIsAhead(t *testing.T) {
	for _, workers := range []int{1, 2, 50} {
		synctest.Test(t, func(t *testing.T) {
			d := fault.NewDisk()
			gate := make(chan struct{})
			var done atomic.Int64
			d.Watch(func(c fault.DiskCall) {
				if c.Op == fault.DiskWrite && c.End.IsZero() {
					<-gate
				}
				if c.Op == fault.DiskClose && !c.End.IsZero() {
					done.Add(1)
				}
			})
			f := newSet(d, files.Options{Workers: workers})
			defer f.Close()
			most, given := int64(0), int64(0)
			go func() {
				for range 600 {
					synctest.Wait() // until the iterator has come as far as it can
					gate <- struct{}{}
				}
			}()
			_, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
				for i := range 600 {
					given++
					most = max(most, given-done.Load())
					if !yield(files.Write{Path: fmt.Sprint(i), Data: []byte("x")}) {
						return
					}
				}
			})
			limit := int64(min(32*workers, 128))
			if workers == 1 {
				limit = 0 // the caller's goroutine writes each before it asks for the next
			}
			if err != nil || most > limit+1 || most < limit/2 {
				t.Errorf("%d workers: %d ahead, %v", workers, most, err)
			}
		})
	}
}

func TestLargeFilesAreFewAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: 1e9})
		f := newSet(d, files.Options{Workers: 8})
		defer f.Close()
		big := make([]byte, 8<<20/2)
		most := 0
		_, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
			for i := range 12 {
				synctest.Wait()
				most = max(most, i-d.Count(fault.DiskClose))
				if !yield(files.Write{Path: fmt.Sprint(i), Data: big}) {
					return
				}
			}
		})
		if err != nil || most > 3 {
			t.Errorf("%d large files ahead, %v", most, err)
		}
	})
}

func TestCancelAtEveryCallIsReported(t *testing.T) {
	cause := errors.New("enough")
	for _, mode := range wholeModes {
		for _, sync := range wholeSyncs {
			for at := 1; ; at++ {
				s := newScene(t, mode, sync, 6)
				s.disk.SetSyncsAll("/", at%2 == 0)
				ctx, cancel := context.WithCancelCause(context.Background())
				calls := atomic.Int64{}
				s.disk.Watch(func(c fault.DiskCall) {
					if c.End.IsZero() && calls.Add(1) == int64(at) {
						cancel(cause)
					}
				})
				f := newSet(s.disk, s.options())
				results, err := f.WriteAll(ctx, one(s.files...))
				f.Close()
				s.files = s.files[:results.Len()]
				// The iterator may have had more to give, so that err is not nil though no file has failed.
				if bad := s.judge(results, results.Err()); bad != nil {
					t.Errorf("%v under %v, cancelled in call %d: %v", mode, sync, at, bad)
				}
				if err != nil && !errors.Is(err, cause) {
					t.Errorf("the cause is not reported: %v", err)
				}
				if wrong := s.disk.Violations(); len(wrong) > 0 || s.disk.Open() != 0 {
					t.Error(s.disk.Open(), wrong)
				}
				cancel(nil)
				if calls.Load() < int64(at) {
					break
				}
			}
		}
	}
}

func TestEndedContextWritesNothing(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	d := fault.NewDisk()
	f := newSet(d, files.Options{})
	defer f.Close()
	results, err := f.WriteAll(ctx, one(files.Write{Path: "a"}, files.Write{Path: "b"}))
	if !errors.Is(err, cause) || d.Count(fault.DiskOpen) != 0 {
		t.Errorf("%v after %d opens", err, d.Count(fault.DiskOpen))
	}
	if n := results.Len(); n != 1 {
		t.Errorf("the iterator was asked for %d files", n)
	}
	for _, r := range results.All() {
		if r.Outcome != holdfast.OutcomeUntouched || r.Attempts != 0 || !errors.Is(r.Err, cause) {
			t.Errorf("%+v", r)
		}
	}
	if r, err := f.WriteFile(ctx, "a", nil, files.Create); !errors.Is(err, cause) || r.Outcome != holdfast.OutcomeUntouched {
		t.Errorf("%+v", r)
	}
}

func TestIteratorThatPanicsLeavesNothingBehind(t *testing.T) {
	for _, p := range wholePolicies {
		synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
			d := fault.NewDisk()
			f := newSet(d, files.Options{Policy: p, Workers: 4})
			func() {
				defer func() {
					if recover() != "boo" {
						t.Error("the panic did not come through")
					}
				}()
				f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
					for i := range 40 {
						yield(files.Write{Path: fmt.Sprint(i), Data: []byte("x"), Mode: files.Replace})
					}
					panic("boo")
				})
			}()
			// The paths are free again.
			if r, err := f.WriteFile(context.Background(), "39", []byte("y"), files.Replace); err != nil {
				t.Error(r, err)
			}
			if err := f.Close(); err != nil || d.Open() != 0 {
				t.Error(err, d.Open())
			}
			for p := range d.ProcessCrash().Files {
				if strings.Contains(p, temporary.Prefix) {
					t.Errorf("%s is left", p)
				}
			}
		})
	}
}

func TestNoFilesAreNoWork(t *testing.T) {
	for _, p := range wholePolicies {
		d := fault.NewDisk()
		f := newSet(d, files.Options{Policy: p})
		results, err := f.WriteAll(context.Background(), one())
		if err != nil || results.Len() != 0 || d.Count(fault.AnyDiskOp) != 0 {
			t.Errorf("%v, %v, %d calls", results, err, d.Count(fault.AnyDiskOp))
		}
		f.Close()
	}
}

func TestFewerDescriptorsThanHandlesSuffice(t *testing.T) {
	for _, p := range wholePolicies {
		synctest.Test(t, func(t *testing.T) {
			d := fault.NewDisk()
			d.SetDescriptors(5)
			f := newSet(d, files.Options{Policy: p, Handles: 64, Workers: 16, MkdirAll: true, Retry: files.Retry{Attempts: 60}})
			results, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
				for i := range 100 {
					yield(files.Write{Path: fmt.Sprintf("/d%d/%d", i%9, i), Data: []byte("x")})
				}
			})
			if err != nil {
				t.Errorf("%v: %+v %v", p, results.Totals(), err)
			}
			f.Close()
			if wrong := d.Violations(); len(wrong) > 0 || d.Open() != 0 {
				t.Error(d.Open(), wrong)
			}
		})
	}
}

func TestFullDiskThatLiftsIsWaitedFor(t *testing.T) {
	for _, mode := range wholeModes {
		for _, sync := range wholeSyncs {
			for _, attempts := range []int{1, 8} {
				synctest.Test(t, func(t *testing.T) {
					s := newScene(t, mode, sync, 8)
					s.disk.SetRoom(s.disk.Used() + 40)
					time.AfterFunc(2*time.Second, func() { s.disk.SetRoom(fault.Unlimited) })
					o := s.options()
					o.Retry.Attempts = attempts
					results, err := s.run(t, o)
					if attempts > 1 && (err != nil || results.Totals().Attempts <= 8) {
						t.Errorf("%v under %v: %+v, %v", mode, sync, results.Totals(), err)
					}
					if attempts == 1 && !errors.Is(err, syscall.ENOSPC) {
						t.Errorf("%v under %v: %v", mode, sync, err)
					}
					time.Sleep(3 * time.Second) // lets the timer end
				})
			}
		}
	}
}

func TestDeniedFileFailsAloneAndOnce(t *testing.T) {
	for _, mode := range wholeModes {
		for _, sync := range wholeSyncs {
			s := newScene(t, mode, sync, 8)
			s.disk.Deny("/a/file4", syscall.EACCES)
			results, err := s.run(t, s.options())
			if !errors.Is(err, fs.ErrPermission) {
				t.Error(err)
			}
			if total := results.Totals(); total.Failed != 1 || results.At(4).Err == nil || results.At(4).Attempts != 1 {
				t.Errorf("%v under %v: %+v", mode, sync, total)
			}
		}
	}
}

func TestDirectoryThatIsRemovedFailsItsFiles(t *testing.T) {
	for _, mode := range wholeModes {
		for _, sync := range wholeSyncs {
			s := newScene(t, mode, sync, 6)
			f := newSet(s.disk, s.options())
			if _, err := f.WriteAll(context.Background(), one(files.Write{Path: "/a/first"}, files.Write{Path: "/b/first"})); err != nil {
				t.Fatal(err)
			}
			s.disk.RemoveAll("/a") // it is cached
			results, err := f.WriteAll(context.Background(), one(s.files...))
			f.Close()
			if !errors.Is(err, fs.ErrNotExist) || results.Totals().Failed != 3 {
				t.Errorf("%v under %v: %+v %v", mode, sync, results.Totals(), err)
			}
			if data, _ := s.disk.ReadFile("/b/file1"); len(data) == 0 {
				t.Error("the other directory's files are not written")
			}
		}
	}
}

func TestDirectoryThatIsMovedIsNotWrittenTo(t *testing.T) {
	d := fault.NewDisk()
	d.MkdirAll("a")
	f := newSet(d, files.Options{})
	defer f.Close()
	write := func(path string) {
		t.Helper()
		if _, err := f.WriteFile(context.Background(), path, []byte(path), files.Create); err != nil {
			t.Error(err)
		}
	}
	write("a/one")
	d.Move("a", "b")
	d.MkdirAll("a")
	write("a/two")
	if _, err := d.ReadFile("b/two"); err == nil {
		t.Error("the file went to the directory of before")
	}
	if _, err := d.ReadFile("a/two"); err != nil {
		t.Error(err)
	}
}

func TestClosedFilesRefusesCalls(t *testing.T) {
	d := fault.NewDisk()
	f := newSet(d, files.Options{})
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	r, err := f.WriteFile(context.Background(), "a", nil, files.Create)
	if !errors.Is(err, os.ErrClosed) || r.Outcome != holdfast.OutcomeUntouched {
		t.Errorf("%+v", r)
	}
	pulled := false
	results, err := f.WriteAll(context.Background(), func(func(files.Write) bool) { pulled = true })
	if !errors.Is(err, os.ErrClosed) || results.Len() != 0 || pulled {
		t.Errorf("%v %v", results, err)
	}
	if d.Count(fault.AnyDiskOp) != 0 {
		t.Error("it asked the disk")
	}
}

func TestCloseWaitsForBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: 1e9})
		f := newSet(d, files.Options{})
		go f.WriteFile(context.Background(), "a", []byte("x"), files.Create)
		synctest.Wait()
		f.Close()
		if data, _ := d.ReadFile("a"); string(data) != "x" || d.Open() != 0 {
			t.Errorf("%q, %d open", data, d.Open())
		}
	})
}

// Nothing makes room for another file at the end.
func TestWhatCloseClosesIsNoEviction(t *testing.T) {
	f := newSet(fault.NewDisk(), files.Options{})
	if err := f.Append(context.Background(), "/a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if s := f.Stats(); s.Evictions != 0 || s.Open != 0 {
		t.Errorf("%d evictions, %d open", s.Evictions, s.Open)
	}
}

func TestWrongPathsAndModesAreRefused(t *testing.T) {
	f := newSet(fault.NewDisk(), files.Options{})
	defer f.Close()
	results, err := f.WriteAll(context.Background(), one(
		files.Write{Path: ""}, files.Write{Path: "a/"}, files.Write{Path: "a\x00b"}, files.Write{Path: "c", Mode: 9}, files.Write{Path: "good"}))
	if err == nil || results.Totals().Failed != 4 || results.Totals().Untouched != 4 || results.At(4).Err != nil {
		t.Errorf("%+v, %v", results.Totals(), err)
	}
}

func TestNewFileWithTwoPathsHoldsOneOfTheirDatas(t *testing.T) {
	for _, take := range []int{3, fault.All} {
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Take: take})
		d.MkdirAll("a")
		f := newSet(d, files.Options{Workers: 8})
		var writes []files.Write
		for i := range 400 {
			path := fmt.Sprintf([]string{"a/%d", "a/../a/%d", "soft%d", "./a/%d"}[i%4], i/4)
			if i%4 == 0 {
				d.Symlink(fmt.Sprintf("a/%d", i/4), fmt.Sprintf("soft%d", i/4))
			}
			writes = append(writes, files.Write{Path: path, Data: fmt.Appendf(nil, "<%07d>", i), Mode: files.Truncate})
		}
		if _, err := f.WriteAll(context.Background(), one(writes...)); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for i := range 100 {
			var n int
			data, _ := d.ReadFile(fmt.Sprintf("a/%d", i))
			if _, err := fmt.Sscanf(string(data), "<%07d>", &n); err != nil || len(data) != 9 || n/4 != i {
				t.Errorf("a/%d holds %q", i, data)
			}
		}
		if wrong := d.Violations(); len(wrong) > 0 {
			t.Error(wrong)
		}
	}
}

func TestNewFileIsWrittenBeforeAnotherPathFindsItEmpty(t *testing.T) {
	d := fault.NewDisk()
	d.MkdirAll("a")
	f := newSet(d, files.Options{})
	begun := make(chan struct{})
	var first atomic.Bool
	d.Watch(func(c fault.DiskCall) {
		if c.Op != fault.DiskWrite || !c.End.IsZero() || !first.CompareAndSwap(false, true) {
			return
		}
		close(begun)
		for d.Count(fault.DiskOpen) < 3 { // the other has found that it is there, and opened it
			runtime.Gosched()
		}
		for range 10_000 { // time enough for a goroutine that does not wait
			runtime.Gosched()
		}
	})
	var both sync.WaitGroup
	both.Go(func() { f.WriteFile(context.Background(), "a/file", []byte("first"), files.Truncate) })
	<-begun
	both.Go(func() { f.WriteFile(context.Background(), "a/../a/file", []byte("second"), files.Truncate) })
	both.Wait()
	f.Close()
	if data, _ := d.ReadFile("a/file"); string(data) != "second" || len(d.Violations()) > 0 {
		t.Errorf("%q, %v", data, d.Violations())
	}
}
