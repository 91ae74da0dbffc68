//go:build go1.25

package files_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
)

// durableFiles returns n new files, spread over these directories.
func durableFiles(n int, mode files.Mode, dirs ...string) []files.Write {
	var writes []files.Write
	for i := range n {
		writes = append(writes, files.Write{Path: fmt.Sprintf("%s/%d", dirs[i%len(dirs)], i), Data: fmt.Appendf(nil, "file %d", i), Mode: mode})
	}
	return writes
}

// makeDurable writes files as a batch, and fails if any of them is not whole after a power cut.
func makeDurable(t *testing.T, d *fault.Disk, o files.Options, writes []files.Write) {
	t.Helper()
	if o.Policy.Sync.Mode == holdfast.SyncNever {
		o.Policy.Sync = holdfast.Sync{Mode: holdfast.SyncGroup}
	}
	f := newSet(d, o)
	results, err := f.WriteAll(context.Background(), one(writes...))
	if err != nil || results.Totals().Durable != len(writes) {
		t.Errorf("%+v, %v", results.Totals(), err)
	}
	for seed := range uint64(20) {
		image := d.PowerCut(rand.New(rand.NewPCG(seed, 3)))
		for _, w := range writes {
			if data, _ := image.File(w.Path); string(data) != string(w.Data) {
				t.Fatalf("after a power cut %s holds %q", w.Path, data)
			}
		}
	}
	if err := f.Close(); err != nil || d.Open() != 0 || len(d.Violations()) > 0 {
		t.Error(err, d.Open(), d.Violations())
	}
}

func TestBatchOnOneFileSystemIsOneSync(t *testing.T) {
	d := fault.NewDisk()
	d.MkdirAll("a")
	d.MkdirAll("b")
	makeDurable(t, d, files.Options{}, durableFiles(300, files.Create, "a", "b"))
	if all, one := d.Count(fault.DiskSyncAll), d.Count(fault.DiskSync); all != 1 || one != 0 {
		t.Errorf("%d syncs of all and %d of one", all, one)
	}
}

func TestBatchWithoutSyncAllSyncsEachFileAndEachDirectoryOnce(t *testing.T) {
	d := fault.NewDisk()
	d.SetSyncsAll("/", false)
	d.MkdirAll("a")
	d.MkdirAll("b")
	makeDurable(t, d, files.Options{}, durableFiles(300, files.Create, "a", "b"))
	if all, one := d.Count(fault.DiskSyncAll), d.Count(fault.DiskSync); all != 0 || one != 302 {
		t.Errorf("%d syncs of all and %d of one", all, one)
	}
}

func TestReplacedBatchSyncsBeforeAndAfterItsRenames(t *testing.T) {
	check := func(dirs, wantAll, wantOne int) {
		t.Helper()
		d := fault.NewDisk()
		var in []string
		for i := range dirs {
			in = append(in, fmt.Sprintf("d%d", i))
			d.MkdirAll(in[i])
		}
		makeDurable(t, d, files.Options{}, durableFiles(120, files.Replace, in...))
		if all, one := d.Count(fault.DiskSyncAll), d.Count(fault.DiskSync); all != wantAll || one != wantOne {
			t.Errorf("%d directories: %d syncs of all and %d of one", dirs, all, one)
		}
	}
	check(1, 1, 1)
	check(durable.FewDirs, 1, durable.FewDirs)
	check(durable.FewDirs+1, 2, 0)
}

func TestThirdFileSystemIsSyncedFileByFile(t *testing.T) {
	d := fault.NewDisk()
	for _, name := range []string{"a", "b", "c"} {
		if err := d.Mount(name); err != nil {
			t.Fatal(err)
		}
	}
	makeDurable(t, d, files.Options{}, durableFiles(30, files.Create, "a", "b", "c"))
	if all, one := d.Count(fault.DiskSyncAll), d.Count(fault.DiskSync); all != handles.ErrseqDescriptors || one != 11 {
		t.Errorf("%d syncs of all and %d of one", all, one)
	}
}

func TestOnlyFileOfABatchIsSyncedByItself(t *testing.T) {
	for _, sync := range []holdfast.Sync{{Mode: holdfast.SyncClose}, {Mode: holdfast.SyncGroup}, holdfast.SyncEvery(time.Hour)} {
		for _, mode := range wholeModes {
			for _, n := range []int{1, 2} {
				d := fault.NewDisk()
				d.MkdirAll("a")
				makeDurable(t, d, files.Options{Policy: holdfast.Policy{Sync: sync}}, durableFiles(n, mode, "a"))
				if alone := d.Count(fault.DiskSyncAll) == 0 && d.Count(fault.DiskSync) == 2; alone != (n == 1) {
					t.Errorf("%v, %v: synced by itself is %v for %d files", sync, mode, alone, n)
				}
			}
		}
	}
}

func TestFirstFileIsNotBegunBeforeTheSecondIsGiven(t *testing.T) {
	d := fault.NewDisk()
	f := newSet(d, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}})
	defer f.Close()
	_, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
		yield(files.Write{Path: "x", Data: []byte("batch"), Mode: files.Append})
		// A call of the iterator's own does not wait for the file that is held back.
		if _, err := f.WriteFile(context.Background(), "x", []byte("iterator,"), files.Append); err != nil {
			t.Error(err)
		}
	})
	if data, _ := d.ReadFile("x"); err != nil || string(data) != "iterator,batch" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestFirstFileIsUntouchedIfTheIteratorPanics(t *testing.T) {
	d := fault.NewDisk()
	f := newSet(d, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}})
	for range 2 { // the second uses the memory of the first
		func() {
			defer func() { recover() }()
			f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
				yield(files.Write{Path: "x", Data: []byte("x")})
				panic("no more")
			})
		}()
	}
	if err := f.Close(); err != nil || d.Count(fault.AnyDiskOp) != 0 {
		t.Error(d.Count(fault.AnyDiskOp), err)
	}
}

func TestWhatOthersHaveWrittenDecidesHowFilesAreSynced(t *testing.T) {
	check := func(dirty int64, n int, wantAll bool) {
		t.Helper()
		d := fault.NewDisk()
		d.MkdirAll("a")
		d.SetDirty(dirty)
		makeDurable(t, d, files.Options{Workers: 1, Handles: 4}, durableFiles(n, files.Create, "a"))
		if all := d.Count(fault.DiskSyncAll) > 0; all != wantAll {
			t.Errorf("%d dirty bytes and %d files: all synced is %v", dirty, n, all)
		}
	}
	check(-1, 500, false) // not known
	check(durable.FreeDirty, 2, true)
	check(durable.FreeDirty+1<<20, 2, false)
	check(durable.FreeDirty+1<<20, 200, true)
	check(1<<40, 500, false)
}

func TestLargeBatchIsMadeDurableInSteps(t *testing.T) {
	d := fault.NewDisk()
	d.MkdirAll("a")
	writes := durableFiles(durable.MostPerStep+1, files.Create, "a")
	f := newSet(d, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}})
	defer f.Close()
	synced := 0
	results, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
		for _, w := range writes {
			if synced = d.Count(fault.DiskSyncAll); !yield(w) {
				return
			}
		}
	})
	if err != nil || results.Totals().Durable != len(writes) || synced != 0 || d.Count(fault.DiskSyncAll) != 2 {
		t.Errorf("%+v, %v; %d syncs, %d before the last file", results.Totals(), err, d.Count(fault.DiskSyncAll), synced)
	}
}

func TestEvictedDirectoriesAreSyncedAllTheSame(t *testing.T) {
	for _, all := range []bool{true, false} {
		for _, mode := range []files.Mode{files.Create, files.Replace} {
			d := fault.NewDisk()
			d.SetSyncsAll("/", all)
			var dirs []string
			for i := range 20 {
				dirs = append(dirs, fmt.Sprintf("d%d", i))
				d.MkdirAll(dirs[i])
			}
			d.SetCap(handles.LeastHandles)
			makeDurable(t, d, files.Options{Handles: handles.LeastHandles}, durableFiles(60, mode, dirs...))
		}
	}
}

func TestDirectoriesThatAreMadeAreDurable(t *testing.T) {
	for _, all := range []bool{true, false} {
		d := fault.NewDisk()
		d.SetSyncsAll("/", all)
		makeDurable(t, d, files.Options{MkdirAll: true}, durableFiles(20, files.Create, "a/b/c", "a/d", "e"))
	}
}

func TestFailedSyncOfAllIsMadeOnce(t *testing.T) {
	for _, mode := range []files.Mode{files.Create, files.Replace} {
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskSyncAll, Err: syscall.EIO, Times: 1})
		d.MkdirAll("a")
		f := newSet(d, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}})
		results, err := f.WriteAll(context.Background(), one(durableFiles(20, mode, "a")...))
		want := holdfast.OutcomeUncertain
		if mode == files.Replace {
			want = holdfast.OutcomeUntouched
		}
		for _, r := range results.All() {
			if r.Outcome != want || r.Err == nil || !strings.Contains(r.Err.Error(), "sync") {
				t.Errorf("%v: %+v", mode, r)
			}
		}
		if err == nil || d.Count(fault.DiskSyncAll) != 1 {
			t.Errorf("%d syncs, %v", d.Count(fault.DiskSyncAll), err)
		}
		f.Close()
	}
}

func TestDirectoryMovedBeforeItsSyncIsNotDurable(t *testing.T) {
	d := fault.NewDisk()
	d.SetSyncsAll("/", false)
	d.MkdirAll("a")
	f := newSet(d, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}, Handles: 4})
	defer f.Close()
	results, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
		yield(files.Write{Path: "a/file", Data: []byte("x")})
		yield(files.Write{Path: "other", Data: []byte("x")}) // the first is begun with the second
		for d.Count(fault.DiskSync) < 2 {
			runtime.Gosched()
		}
		d.Move("a", "b")
		d.MkdirAll("a")
		for i := range 10 { // evict the directory
			d.MkdirAll(fmt.Sprint("d", i))
			yield(files.Write{Path: fmt.Sprintf("d%d/file", i), Data: []byte("x")})
		}
	})
	if err == nil || results.At(0).Outcome != holdfast.OutcomeUncertain || results.Totals().Durable != 11 {
		t.Errorf("%+v, %v", results.At(0), err)
	}
}

func TestNamesLostByAnotherSyncAreNotDurable(t *testing.T) {
	for _, batch := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := fault.NewDisk(
				fault.DiskFault{Op: fault.DiskWrite, Path: "slow", Delay: time.Second, Take: fault.All},
				fault.DiskFault{Op: fault.DiskSync, Path: "/a", Err: syscall.EIO, Times: 1})
			d.SetSyncsAll("/", false)
			d.MkdirAll("a")
			f := newSet(d, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}})
			defer f.Close()
			done := make(chan files.Result)
			go func() {
				if !batch {
					r, _ := f.WriteFile(context.Background(), "a/slow", []byte("x"), files.Create)
					done <- r
					return
				}
				results, _ := f.WriteAll(context.Background(), one(files.Write{Path: "a/slow", Data: []byte("x")}))
				done <- results.At(0)
			}()
			synctest.Wait() // its name is there, and its bytes not yet
			if r, err := f.WriteFile(context.Background(), "a/quick", []byte("x"), files.Create); err == nil || r.Outcome != holdfast.OutcomeUncertain {
				t.Errorf("quick: %+v", r)
			}
			if r := <-done; r.Outcome != holdfast.OutcomeUncertain {
				t.Errorf("slow: %+v", r)
			}
			if r, err := f.WriteFile(context.Background(), "a/later", []byte("x"), files.Create); err != nil {
				t.Errorf("later: %+v", r)
			}
			if wrong := d.Violations(); len(wrong) > 0 {
				t.Error(wrong)
			}
		})
	}
}

func TestWholeFilesAndAppendsOfOnePathKeepTheirOrder(t *testing.T) {
	for _, p := range []holdfast.Policy{{}, holdfast.Buffered(holdfast.KiB), holdfast.Durable()} {
		for _, mode := range []files.Mode{files.Truncate, files.Replace, files.Append} {
			d := fault.NewDisk()
			f := newSet(d, files.Options{Policy: p})
			ctx := context.Background()
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}
			do(f.Append(ctx, "/log", []byte("one ")))
			_, err := f.WriteFile(ctx, "/log", []byte("two "), mode)
			do(err)
			do(f.Append(ctx, "/log", []byte("three ")))
			_, err = f.WriteAll(ctx, one(files.Write{Path: "/log", Data: []byte("four "), Mode: mode}))
			do(err)
			do(f.Append(ctx, "/log", []byte("five")))
			do(f.Close())
			want := "four five"
			if mode == files.Append {
				want = "one two three four five"
			}
			if data, _ := d.ReadFile("/log"); string(data) != want {
				t.Errorf("%v under %v: %q", mode, p, data)
			}
			if d.Open() != 0 || len(d.Violations()) > 0 {
				t.Error(d.Open(), d.Violations())
			}
		}
	}
}

func TestFileInDirectoryThatAnotherMakesIsDurableWithIt(t *testing.T) {
	for _, all := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Path: "/", Delay: time.Second})
			d.SetSyncsAll("/", all)
			f := newSet(d, files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}, MkdirAll: true})
			defer f.Close()
			go f.WriteFile(context.Background(), "a/one", []byte("x"), files.Create)
			synctest.Wait() // the directory is there, and its name not durable
			if d.Count(fault.DiskMkdir) != 1 {
				t.Fatal("the directory is not there")
			}
			if _, err := f.WriteFile(context.Background(), "a/two", []byte("y"), files.Create); err != nil {
				t.Error(err)
			}
			for seed := range uint64(20) {
				if data, _ := d.PowerCut(rand.New(rand.NewPCG(seed, 4))).File("a/two"); string(data) != "y" {
					t.Fatalf("after a power cut it holds %q", data)
				}
			}
		})
	}
}
