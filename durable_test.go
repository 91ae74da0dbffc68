package holdfast

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

	"github.com/holdfast-go/holdfast/internal/fault"
)

// durableFiles returns n new files, spread over these folders.
func durableFiles(n int, mode Mode, folders ...string) []FileWrite {
	var files []FileWrite
	for i := range n {
		files = append(files, FileWrite{Path: fmt.Sprintf("%s/%d", folders[i%len(folders)], i), Data: fmt.Appendf(nil, "file %d", i), Mode: mode})
	}
	return files
}

// makeDurable writes files as a batch, and fails if any of them is not whole after a power cut.
func makeDurable(t *testing.T, d *fault.Disk, o FilesOptions, files []FileWrite) {
	t.Helper()
	if o.Policy.Sync == SyncNever {
		o.Policy.Sync = SyncGroup
	}
	f := newFiles(d, o)
	results, err := f.WriteAll(context.Background(), one(files...))
	if err != nil || results.Totals().Durable != len(files) {
		t.Errorf("%+v, %v", results.Totals(), err)
	}
	for seed := range uint64(20) {
		image := d.PowerCut(rand.New(rand.NewPCG(seed, 3)))
		for _, w := range files {
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
	makeDurable(t, d, FilesOptions{}, durableFiles(300, ModeCreate, "a", "b"))
	if all, one := d.Count(fault.DiskSyncAll), d.Count(fault.DiskSync); all != 1 || one != 0 {
		t.Errorf("%d syncs of all and %d of one", all, one)
	}
}

func TestBatchWithoutSyncAllSyncsEachFileAndEachFolderOnce(t *testing.T) {
	d := fault.NewDisk()
	d.SetSyncsAll("/", false)
	d.MkdirAll("a")
	d.MkdirAll("b")
	makeDurable(t, d, FilesOptions{}, durableFiles(300, ModeCreate, "a", "b"))
	if all, one := d.Count(fault.DiskSyncAll), d.Count(fault.DiskSync); all != 0 || one != 302 {
		t.Errorf("%d syncs of all and %d of one", all, one)
	}
}

func TestReplacedBatchSyncsBeforeAndAfterItsRenames(t *testing.T) {
	check := func(folders, wantAll, wantOne int) {
		t.Helper()
		d := fault.NewDisk()
		var in []string
		for i := range folders {
			in = append(in, fmt.Sprintf("d%d", i))
			d.MkdirAll(in[i])
		}
		makeDurable(t, d, FilesOptions{}, durableFiles(120, ModeReplace, in...))
		if all, one := d.Count(fault.DiskSyncAll), d.Count(fault.DiskSync); all != wantAll || one != wantOne {
			t.Errorf("%d folders: %d syncs of all and %d of one", folders, all, one)
		}
	}
	check(1, 1, 1)
	check(fewFolders, 1, fewFolders)
	check(fewFolders+1, 2, 0)
}

func TestThirdFileSystemIsSyncedFileByFile(t *testing.T) {
	d := fault.NewDisk()
	for _, name := range []string{"a", "b", "c"} {
		if err := d.Mount(name); err != nil {
			t.Fatal(err)
		}
	}
	makeDurable(t, d, FilesOptions{}, durableFiles(30, ModeCreate, "a", "b", "c"))
	if all, one := d.Count(fault.DiskSyncAll), d.Count(fault.DiskSync); all != witnesses || one != 11 {
		t.Errorf("%d syncs of all and %d of one", all, one)
	}
}

func TestOnlyFileOfABatchIsSyncedByItself(t *testing.T) {
	for _, sync := range []Sync{SyncClose, SyncGroup, Sync(time.Hour)} {
		for _, mode := range wholeModes {
			for _, files := range []int{1, 2} {
				d := fault.NewDisk()
				d.MkdirAll("a")
				makeDurable(t, d, FilesOptions{Policy: Policy{Sync: sync}}, durableFiles(files, mode, "a"))
				if alone := d.Count(fault.DiskSyncAll) == 0 && d.Count(fault.DiskSync) == 2; alone != (files == 1) {
					t.Errorf("%v, %v: synced by itself is %v for %d files", sync, mode, alone, files)
				}
			}
		}
	}
}

func TestFirstFileIsNotBegunBeforeTheSecondIsGiven(t *testing.T) {
	d := fault.NewDisk()
	f := newFiles(d, FilesOptions{Policy: Policy{Sync: SyncGroup}})
	defer f.Close()
	_, err := f.WriteAll(context.Background(), func(yield func(FileWrite) bool) {
		yield(FileWrite{Path: "x", Data: []byte("batch"), Mode: ModeAppend})
		// A call of the iterator's own does not wait for the file that is held back.
		if _, err := f.Write(context.Background(), "x", []byte("iterator,"), ModeAppend); err != nil {
			t.Error(err)
		}
	})
	if data, _ := d.ReadFile("x"); err != nil || string(data) != "iterator,batch" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestFirstFileIsUntouchedIfTheIteratorPanics(t *testing.T) {
	d := fault.NewDisk()
	f := newFiles(d, FilesOptions{Policy: Policy{Sync: SyncGroup}})
	for range 2 { // the second uses the memory of the first
		func() {
			defer func() { recover() }()
			f.WriteAll(context.Background(), func(yield func(FileWrite) bool) {
				yield(FileWrite{Path: "x", Data: []byte("x")})
				panic("no more")
			})
		}()
	}
	if err := f.Close(); err != nil || d.Count(fault.AnyDiskOp) != 0 {
		t.Error(d.Count(fault.AnyDiskOp), err)
	}
}

func TestWhatOthersHaveWrittenDecidesHowFilesAreSynced(t *testing.T) {
	check := func(dirty int64, files int, wantAll bool) {
		t.Helper()
		d := fault.NewDisk()
		d.MkdirAll("a")
		d.SetDirty(dirty)
		makeDurable(t, d, FilesOptions{Workers: 1, Handles: 4}, durableFiles(files, ModeCreate, "a"))
		if all := d.Count(fault.DiskSyncAll) > 0; all != wantAll {
			t.Errorf("%d dirty bytes and %d files: all synced is %v", dirty, files, all)
		}
	}
	check(-1, 500, false) // not known
	check(freeDirty, 2, true)
	check(freeDirty+1<<20, 2, false)
	check(freeDirty+1<<20, 200, true)
	check(1<<40, 500, false)
}

func TestSyncAllOrNot(t *testing.T) {
	check := func(files int, dirty int64, want bool) {
		t.Helper()
		if got := worthSyncAll(files, dirty); got != want {
			t.Errorf("%d files, %d dirty: %v", files, dirty, got)
		}
	}
	check(0, freeDirty, true)
	check(0, freeDirty+1, false)
	check(10, freeDirty+10*dirtyPerFile, true)
	check(10, freeDirty+10*dirtyPerFile+1, false)
}

func TestLargeBatchIsMadeDurableInSteps(t *testing.T) {
	d := fault.NewDisk()
	d.MkdirAll("a")
	files := durableFiles(mostPerStep+1, ModeCreate, "a")
	f := newFiles(d, FilesOptions{Policy: Policy{Sync: SyncGroup}})
	defer f.Close()
	synced := 0
	results, err := f.WriteAll(context.Background(), func(yield func(FileWrite) bool) {
		for _, w := range files {
			if synced = d.Count(fault.DiskSyncAll); !yield(w) {
				return
			}
		}
	})
	if err != nil || results.Totals().Durable != len(files) || synced != 0 || d.Count(fault.DiskSyncAll) != 2 {
		t.Errorf("%+v, %v; %d syncs, %d before the last file", results.Totals(), err, d.Count(fault.DiskSyncAll), synced)
	}
}

func TestEvictedFoldersAreSyncedAllTheSame(t *testing.T) {
	for _, all := range []bool{true, false} {
		for _, mode := range []Mode{ModeCreate, ModeReplace} {
			d := fault.NewDisk()
			d.SetSyncsAll("/", all)
			var folders []string
			for i := range 20 {
				folders = append(folders, fmt.Sprintf("d%d", i))
				d.MkdirAll(folders[i])
			}
			d.SetCap(leastHandles)
			makeDurable(t, d, FilesOptions{Handles: leastHandles}, durableFiles(60, mode, folders...))
		}
	}
}

func TestFoldersThatAreMadeAreDurable(t *testing.T) {
	for _, all := range []bool{true, false} {
		d := fault.NewDisk()
		d.SetSyncsAll("/", all)
		makeDurable(t, d, FilesOptions{Folders: true}, durableFiles(20, ModeCreate, "a/b/c", "a/d", "e"))
	}
}

func TestFailedSyncOfAllIsMadeOnce(t *testing.T) {
	for _, mode := range []Mode{ModeCreate, ModeReplace} {
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskSyncAll, Err: syscall.EIO, Times: 1})
		d.MkdirAll("a")
		f := newFiles(d, FilesOptions{Policy: Policy{Sync: SyncGroup}})
		results, err := f.WriteAll(context.Background(), one(durableFiles(20, mode, "a")...))
		want := OutcomeUncertain
		if mode == ModeReplace {
			want = OutcomeUntouched
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

func TestFolderMovedBeforeItsSyncIsNotDurable(t *testing.T) {
	d := fault.NewDisk()
	d.SetSyncsAll("/", false)
	d.MkdirAll("a")
	f := newFiles(d, FilesOptions{Policy: Policy{Sync: SyncGroup}, Handles: 4})
	defer f.Close()
	results, err := f.WriteAll(context.Background(), func(yield func(FileWrite) bool) {
		yield(FileWrite{Path: "a/file", Data: []byte("x")})
		yield(FileWrite{Path: "other", Data: []byte("x")}) // the first is begun with the second
		for d.Count(fault.DiskSync) < 2 {
			runtime.Gosched()
		}
		d.Move("a", "b")
		d.MkdirAll("a")
		for i := range 10 { // evict the folder
			d.MkdirAll(fmt.Sprint("d", i))
			yield(FileWrite{Path: fmt.Sprintf("d%d/file", i), Data: []byte("x")})
		}
	})
	if err == nil || results.At(0).Outcome != OutcomeUncertain || results.Totals().Durable != 11 {
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
			f := newFiles(d, FilesOptions{Policy: Policy{Sync: SyncGroup}})
			defer f.Close()
			done := make(chan FileResult)
			go func() {
				if !batch {
					r, _ := f.Write(context.Background(), "a/slow", []byte("x"), ModeCreate)
					done <- r
					return
				}
				results, _ := f.WriteAll(context.Background(), one(FileWrite{Path: "a/slow", Data: []byte("x")}))
				done <- results.At(0)
			}()
			synctest.Wait() // its name is there, and its bytes not yet
			if r, err := f.Write(context.Background(), "a/quick", []byte("x"), ModeCreate); err == nil || r.Outcome != OutcomeUncertain {
				t.Errorf("quick: %+v", r)
			}
			if r := <-done; r.Outcome != OutcomeUncertain {
				t.Errorf("slow: %+v", r)
			}
			if r, err := f.Write(context.Background(), "a/later", []byte("x"), ModeCreate); err != nil {
				t.Errorf("later: %+v", r)
			}
			if wrong := d.Violations(); len(wrong) > 0 {
				t.Error(wrong)
			}
		})
	}
}

func TestWholeFilesAndAppendsOfOnePathKeepTheirOrder(t *testing.T) {
	for _, p := range []Policy{{}, Buffered(KiB), Durable()} {
		for _, mode := range []Mode{ModeTruncate, ModeReplace, ModeAppend} {
			d := fault.NewDisk()
			f := newFiles(d, FilesOptions{Policy: p})
			ctx := context.Background()
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}
			do(f.Append(ctx, "log", []byte("one ")))
			_, err := f.Write(ctx, "log", []byte("two "), mode)
			do(err)
			do(f.Append(ctx, "log", []byte("three ")))
			_, err = f.WriteAll(ctx, one(FileWrite{Path: "log", Data: []byte("four "), Mode: mode}))
			do(err)
			do(f.Append(ctx, "log", []byte("five")))
			do(f.Close())
			want := "four five"
			if mode == ModeAppend {
				want = "one two three four five"
			}
			if data, _ := d.ReadFile("log"); string(data) != want {
				t.Errorf("%v under %v: %q", mode, p, data)
			}
			if d.Open() != 0 || len(d.Violations()) > 0 {
				t.Error(d.Open(), d.Violations())
			}
		}
	}
}

func TestFileInFolderThatAnotherMakesIsDurableWithIt(t *testing.T) {
	for _, all := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Path: "/", Delay: time.Second})
			d.SetSyncsAll("/", all)
			f := newFiles(d, FilesOptions{Policy: Policy{Sync: SyncGroup}, Folders: true})
			defer f.Close()
			go f.Write(context.Background(), "a/one", []byte("x"), ModeCreate)
			synctest.Wait() // the folder is there, and its name not durable
			if d.Count(fault.DiskMkdir) != 1 {
				t.Fatal("the folder is not there")
			}
			if _, err := f.Write(context.Background(), "a/two", []byte("y"), ModeCreate); err != nil {
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
