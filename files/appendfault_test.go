//go:build go1.25

package files_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// newSet returns a Set on any disk.
var newSet = vfs.NewSet.(func(vfs.Disk, files.Options) *files.Set)

// onDisk returns a Set on a disk in memory. At its end the test checks that the
// disk was used as disks must be, and that no descriptor is left.
func onDisk(t *testing.T, disk *fault.Disk, options files.Options) *files.Set {
	t.Helper()
	isolate.Once(t, isolate.Ordinary) // such a disk asks for no rights
	f := newSet(disk, options)
	disk.SetCap(cmp.Or(options.Handles, 1024))
	t.Cleanup(func() {
		f.Close()
		for _, wrong := range disk.Violations() {
			t.Error(wrong)
		}
		if n := disk.Open(); n != 0 {
			t.Errorf("%d descriptors are left open", n)
		}
	})
	return f
}

func wantOnDisk(t *testing.T, disk *fault.Disk, path, want string) {
	t.Helper()
	got, err := disk.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatalf("%s holds %.200q, want %.200q", path, got, want)
	}
}

// failureOf checks that err is an Error of this path and cause.
func failureOf(t *testing.T, err error, path string, cause error) *files.Error {
	t.Helper()
	var failed *files.Error
	if !errors.As(err, &failed) || !isPath(failed.Path, path) || !errors.Is(err, cause) {
		t.Fatalf("got error %v, want one of %s: %v", err, path, cause)
	}
	return failed
}

var once = files.Retry{Attempts: 1}

func TestManyPathsShareFewHandles(t *testing.T) {
	isolate.Once(t) // one goroutine calls, and its disk is in memory
	for _, p := range []holdfast.Policy{holdfast.Buffered(holdfast.KiB), {Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, holdfast.Unbuffered()} {
		t.Run(p.String(), func(t *testing.T) {
			paths, rounds := 10_000, 3
			if testing.Short() {
				paths = 1000
			}
			disk := fault.NewDisk()
			f := onDisk(t, disk, files.Options{Policy: p, Handles: 16, Memory: 256 * holdfast.KiB})
			for round := range rounds {
				for i := range paths {
					mustAppend(t, f, fmt.Sprint("/", i), fmt.Sprintf("%d of %d\n", round, i))
					if i%100 == 0 {
						if n := f.Stats().Memory; n > int64(256*holdfast.KiB) {
							t.Fatalf("%d bytes of memory are in use", n)
						}
					}
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if n := disk.MostOpen(); n > 16 {
				t.Errorf("%d descriptors were open", n)
			}
			for i := range paths {
				wantOnDisk(t, disk, fmt.Sprint("/", i), fmt.Sprintf("0 of %d\n1 of %d\n2 of %d\n", i, i, i))
			}
		})
	}
}

func TestIdlePathsAreForgotten(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Buffered(holdfast.KiB), {Buffer: holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, holdfast.Durable(), holdfast.EachDurable()} {
		disk := fault.NewDisk()
		f := onDisk(t, disk, files.Options{Policy: p, Handles: 8, Memory: 16 * holdfast.KiB})
		for i := range 1000 {
			mustAppend(t, f, fmt.Sprint("/", i), "x")
		}
		if err := f.Flush(noContext); err != nil {
			t.Fatal(err)
		}
		if n := f.Stats().Streams; n > 8 {
			t.Errorf("%v: %d streams are kept", p, n)
		}
	}
}

func TestNamesOfOneFileDoNotMixTheirBytes(t *testing.T) {
	synctest.Test(t, appendByFourNames)
}

func appendByFourNames(t *testing.T) {
	disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Take: 7, Delay: time.Millisecond})
	for _, err := range []error{
		disk.MkdirAll("/a"), disk.WriteFile("/file", nil, 0o666), disk.Link("/file", "/hard"), disk.Symlink("file", "/soft"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f := onDisk(t, disk, files.Options{Policy: holdfast.Unbuffered()})
	names := []string{"/file", "/hard", "/soft", "/a/../file"}
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			for range 50 {
				if err := f.Append(noContext, name, []byte(fmt.Sprintf("%d %040d\n", i, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, _ := disk.ReadFile("/file")
	lines := strings.Split(strings.TrimSuffix(string(got), "\n"), "\n")
	if len(lines) != 50*len(names) {
		t.Fatalf("there are %d lines", len(lines))
	}
	for _, line := range lines {
		var i int
		fmt.Sscan(line, &i)
		if line != fmt.Sprintf("%d %040d", i, i) {
			t.Fatalf("line %q is mixed", line)
		}
	}
}

func TestFailedWriteOfOnePathLeavesOthersAlone(t *testing.T) {
	disk := fault.NewDisk()
	f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(64), Retry: once})
	mustAppend(t, f, "/a/denied", "kept ")
	disk.MkdirAll("/a")
	disk.Deny("denied", syscall.EACCES)
	for range 3 {
		failureOf(t, f.Append(noContext, "/a/denied", make([]byte, 60)), "/a/denied", fs.ErrPermission)
		mustAppend(t, f, "/b", "on ")
	}
	failureOf(t, f.Flush(noContext), "/a/denied", fs.ErrPermission)
	disk.Mend()
	mustAppend(t, f, "/a/denied", "and on")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wantOnDisk(t, disk, "/a/denied", "kept and on")
	wantOnDisk(t, disk, "/b", "on on on ")
}

func TestRemovedDirectory(t *testing.T) {
	for _, made := range []bool{false, true} {
		disk := fault.NewDisk()
		disk.MkdirAll("/x/y")
		f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(64), MkdirAll: made, Retry: once})
		mustAppend(t, f, "/x/y/log", "old")
		if err := f.Release(noContext, "/x/y/log"); err != nil {
			t.Fatal(err)
		}
		if err := disk.RemoveAll("/x"); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, f, "/x/y/log", "new")
		err := f.Flush(noContext)
		if !made {
			failureOf(t, err, "/x/y/log", fs.ErrNotExist)
			disk.MkdirAll("/x/y")
			err = f.Flush(noContext)
		}
		if err != nil {
			t.Fatal(err)
		}
		wantOnDisk(t, disk, "/x/y/log", "new")
	}
}

// TestFoundDirectoriesBecomeDurable: a process that was killed may have made them, behind whatever is durable.
func TestFoundDirectoriesBecomeDurable(t *testing.T) {
	paths := []string{"/x/a/file", "/x/b/file", "/x/b/c/file", "/x/file"}
	for name, write := range map[string]func(f *files.Set) error{
		"append": func(f *files.Set) (err error) {
			for _, path := range paths {
				err = errors.Join(err, f.Append(noContext, path, []byte("x")))
			}
			return err
		},
		"one by one": func(f *files.Set) (err error) {
			for _, path := range paths {
				_, one := f.WriteFile(noContext, path, []byte("x"), files.Create)
				err = errors.Join(err, one)
			}
			return err
		},
		"all": func(f *files.Set) error {
			_, err := f.WriteAll(noContext, func(yield func(files.Write) bool) {
				for _, path := range paths {
					if !yield(files.Write{Path: path, Data: []byte("x"), Mode: files.Create}) {
						return
					}
				}
			})
			return err
		},
	} {
		for _, policy := range []holdfast.Policy{holdfast.EachDurable(), holdfast.Durable()} {
			disk := fault.NewDisk()
			for _, dir := range []string{"/x", "/x/a", "/x/b", "/x/b/c"} {
				name, _ := sys.NewName(dir)
				if err := disk.Mkdir(name, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			f := onDisk(t, disk, files.Options{Policy: policy, MkdirAll: true})
			if err := errors.Join(write(f), f.Flush(noContext)); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(50) {
				image := disk.PowerCut(rand.New(rand.NewPCG(seed, 1)))
				for _, path := range paths {
					if got, _ := image.File(path); string(got) != "x" {
						t.Fatalf("%s, %v, seed %d: %s is %q", name, policy, seed, path, got)
					}
				}
			}
		}
	}
}

func TestMadeDirectoriesAreDurable(t *testing.T) {
	disk := fault.NewDisk()
	f := onDisk(t, disk, files.Options{Policy: holdfast.EachDurable(), MkdirAll: true})
	mustAppend(t, f, "/x/y/z/log", "durable")
	for seed := range uint64(100) {
		if got, ok := disk.PowerCut(rand.New(rand.NewPCG(seed, 1))).File("/x/y/z/log"); string(got) != "durable" {
			t.Fatalf("seed %d: %q, %v", seed, got, ok)
		}
	}
}

func TestAppendRefusesWhatIsNoRegularFile(t *testing.T) {
	disk := fault.NewDisk()
	disk.MkdirAll("/directory")
	f := onDisk(t, disk, files.Options{Policy: holdfast.Unbuffered(), Retry: once})
	for _, path := range []string{"/directory", "/directory/", ""} {
		var failed *files.Error
		if err := f.Append(noContext, path, []byte("x")); !errors.As(err, &failed) || failed.Outcome != holdfast.OutcomeUntouched {
			t.Errorf("append to %q: %v", path, err)
		}
	}
}

func TestFailedSyncIsFinalForItsPath(t *testing.T) {
	for _, p := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, Path: "bad", Err: syscall.EIO})
		f := onDisk(t, disk, files.Options{Policy: p})
		f.Append(noContext, "/bad", []byte("x"))
		mustAppend(t, f, "/good", "x")
		for range 2 {
			if failed := failureOf(t, f.Sync(noContext), "/bad", syscall.EIO); failed.Outcome != holdfast.OutcomeUncertain {
				t.Errorf("%v: %+v", p, failed)
			}
			failureOf(t, f.Append(noContext, "/bad", []byte("x")), "/bad", syscall.EIO)
		}
		mustAppend(t, f, "/good", "y")
		failureOf(t, f.Close(), "/bad", syscall.EIO)
		wantOnDisk(t, disk, "/good", "xy")
	}
}

func TestBytesStartOnTheirWayInTime(t *testing.T) {
	for _, p := range []holdfast.Policy{
		{Buffer: holdfast.KiB, FlushEvery: 100 * time.Millisecond},
		{Buffer: holdfast.KiB, Sync: holdfast.SyncEvery(100 * time.Millisecond)},
		{Buffer: holdfast.KiB, FlushEvery: 30 * time.Millisecond, Sync: holdfast.SyncEvery(100 * time.Millisecond)},
	} {
		synctest.Test(t, func(t *testing.T) {
			disk := fault.NewDisk()
			f := onDisk(t, disk, files.Options{Policy: p, Handles: 8})
			var accepted []time.Time
			for i := range 200 {
				mustAppend(t, f, fmt.Sprint("/", i%20), "x")
				accepted = append(accepted, time.Now())
				time.Sleep(time.Duration(i*i%11) * time.Millisecond)
			}
			time.Sleep(time.Second)
			loss := p.Loss()
			for i, at := range accepted {
				path, n := fmt.Sprint("/", i%20), i/20+1
				if late := startOf(disk, path, n, fault.DiskWrite) - time.Duration(at.UnixNano()); late > loss.Process.Time {
					t.Fatalf("%v: byte %d of %s was flushed after %v", p, n, path, late)
				}
				if loss.Power.Time == holdfast.Unlimited {
					continue
				}
				if late := startOf(disk, path, n, fault.DiskDatasync) - time.Duration(at.UnixNano()); late > loss.Power.Time {
					t.Fatalf("%v: byte %d of %s was synced after %v", p, n, path, late)
				}
			}
		})
	}
}

// startOf returns when the first write that took the nth byte of a file began, or the
// first sync that covered it. If there was none, it is years later.
func startOf(disk *fault.Disk, path string, n int, op fault.DiskOp) time.Duration {
	bytes := 0
	for _, c := range disk.Calls() {
		if c.Path != path {
			continue
		}
		bytes += c.Bytes
		if bytes >= n && c.Op == op {
			return time.Duration(c.Start.UnixNano())
		}
	}
	return 1<<63 - 1
}

func TestGroupSharesSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, Take: fault.All, Delay: 10 * time.Millisecond},
			fault.DiskFault{Op: fault.DiskSyncAll, Delay: 10 * time.Millisecond})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Durable(), Handles: 64})
		const paths, rounds = 20, 10
		began := time.Now()
		var all sync.WaitGroup
		for i := range paths {
			all.Go(func() {
				for range rounds {
					mustAppend(t, f, fmt.Sprint("/", i), "x")
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 2*rounds*15*time.Millisecond {
			t.Errorf("%d rounds took %v", rounds, took)
		}
	})
}

func TestCloseReportsEveryFailure(t *testing.T) {
	disk := fault.NewDisk()
	f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Retry: once})
	for _, path := range []string{"/write", "/sync", "/close", "/good"} {
		mustAppend(t, f, path, "accepted")
	}
	disk.Add(fault.DiskFault{Op: fault.DiskWrite, Path: "write", Err: syscall.EDQUOT})
	disk.Add(fault.DiskFault{Op: fault.DiskDatasync, Path: "sync", Err: syscall.EIO})
	disk.Add(fault.DiskFault{Op: fault.DiskClose, Path: "close", Err: syscall.ENOSPC})
	err := f.Close()
	for path, cause := range map[string]error{"/write": syscall.EDQUOT, "/sync": syscall.EIO, "/close": syscall.ENOSPC} {
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), path+":") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if strings.Contains(err.Error(), "good") {
		t.Error(err)
	}
	wantOnDisk(t, disk, "/good", "accepted")
}

func TestEvictedFilesAreSyncedFirst(t *testing.T) {
	disk := fault.NewDisk()
	f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Handles: 8})
	disk.SetSyncsAll("/", false)
	for i := range 100 {
		path := fmt.Sprint("/", i)
		mustAppend(t, f, path, "x")
		if err := f.Flush(noContext); err != nil {
			t.Fatal(err)
		}
	}
	dirty := map[int]bool{}
	for _, c := range disk.Calls() {
		switch c.Op {
		case fault.DiskWrite:
			dirty[c.FD] = true
		case fault.DiskDatasync:
			delete(dirty, c.FD)
		case fault.DiskClose:
			if dirty[c.FD] {
				t.Fatalf("%s was closed before it was synced", c.Path)
			}
		}
	}
}

func TestFailedSyncOfAnEvictedFileIsReported(t *testing.T) {
	disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, Path: "0", Err: syscall.EIO})
	f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Handles: 8})
	for i := range 20 {
		mustAppend(t, f, fmt.Sprint("/", i), "x")
		f.Flush(noContext)
	}
	failureOf(t, f.Append(noContext, "/0", []byte("x")), "/0", syscall.EIO)
	failureOf(t, f.Close(), "/0", syscall.EIO)
}

func TestSyncedBytesAndNamesAreThereAfterAPowerCut(t *testing.T) {
	policies := []holdfast.Policy{holdfast.Buffered(64), {Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, holdfast.Durable(), holdfast.EachDurable(), {Buffer: 64, Sync: holdfast.SyncEvery(time.Hour)}}
	for _, p := range policies {
		for _, together := range []bool{false, true} {
			disk := fault.NewDisk()
			disk.SetSyncsAll("/", true)
			if !together {
				disk.SetDirty(1 << 40)
			}
			disk.MkdirAll("/a")
			disk.MkdirAll("/b")
			f := onDisk(t, disk, files.Options{Policy: p, Handles: 24})
			want := map[string]string{}
			for round := range 3 {
				for i := range 50 {
					path := fmt.Sprintf("/%c/%d", 'a'+i%2, i)
					data := fmt.Sprintf("%d %d\n", round, i)
					mustAppend(t, f, path, data)
					want[path] += data
				}
				if err := f.Sync(noContext); err != nil {
					t.Fatal(err)
				}
				for i := range 10 {
					mustAppend(t, f, fmt.Sprintf("/a/%d", 2*i), "") // looks, and writes nothing
				}
				for seed := range uint64(50) {
					image := disk.PowerCut(rand.New(rand.NewPCG(seed, uint64(round))))
					for path, data := range want {
						if got, _ := image.File(path); string(got) != data {
							t.Fatalf("%v, round %d, seed %d: %s holds %q, want %q", p, round, seed, path, got, data)
						}
					}
				}
			}
			if together && p.Sync.Mode != holdfast.SyncNever && !p.Sync.Waits() && disk.Count(fault.DiskSyncAll) == 0 {
				t.Errorf("%v: no sync of the whole file system", p)
			}
		}
	}
}

func TestFailedSyncOfTheWholeFallsBackToTheFiles(t *testing.T) {
	disk := fault.NewDisk()
	disk.SetSyncsAll("/", true)
	f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}})
	for i := range 20 {
		mustAppend(t, f, fmt.Sprint("/", i), "x")
	}
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	disk.Lose("/7", syscall.EIO)
	err := f.Close()
	failureOf(t, err, "/7", syscall.EIO)
	if _, joined := err.(interface{ Unwrap() []error }); joined {
		t.Errorf("others failed too: %v", err)
	}
}

func TestRemovedFileIsNoticedBySync(t *testing.T) {
	disk := fault.NewDisk()
	f := onDisk(t, disk, files.Options{Policy: holdfast.Buffered(64)})
	mustAppend(t, f, "/a", "x")
	f.Flush(noContext)
	disk.RemoveAll("/a")
	failureOf(t, f.Sync(noContext), "/a", holdfast.ErrUnlinked)
}

func TestContextEndsEachWait(t *testing.T) {
	waits := map[string]struct {
		options files.Options
		faults  []fault.DiskFault
		begin   func(f *files.Set) // runs beside
		outcome holdfast.Outcome
	}{
		"memory": {
			files.Options{Policy: holdfast.Buffered(holdfast.KiB), Memory: holdfast.KiB},
			[]fault.DiskFault{{Op: fault.DiskWrite, Path: "slow", Take: fault.All, Delay: time.Hour}},
			func(f *files.Set) { f.Append(noContext, "/slow", make([]byte, holdfast.KiB)); f.Flush(noContext) },
			holdfast.OutcomeUntouched,
		},
		"turn": {
			files.Options{Policy: holdfast.Unbuffered(), Handles: 4},
			[]fault.DiskFault{{Op: fault.DiskWrite, Path: "slow", Take: fault.All, Delay: time.Hour}},
			func(f *files.Set) { f.Append(noContext, "/slow", []byte("x")) },
			holdfast.OutcomeUntouched,
		},
		"path": {
			files.Options{Policy: holdfast.Unbuffered()},
			[]fault.DiskFault{{Op: fault.DiskWrite, Path: "mine", Times: 1, Take: fault.All, Delay: time.Hour}},
			func(f *files.Set) { f.Append(noContext, "/mine", []byte("x")) },
			holdfast.OutcomeUntouched,
		},
		"pause": {
			files.Options{Policy: holdfast.Unbuffered(), Retry: files.Retry{Attempts: 9, Base: time.Minute, Cap: time.Hour}},
			[]fault.DiskFault{{Op: fault.DiskWrite, Path: "mine", Err: syscall.ENOSPC}},
			func(f *files.Set) {},
			holdfast.OutcomeUntouched,
		},
		"group": {
			files.Options{Policy: holdfast.Durable()},
			[]fault.DiskFault{{Op: fault.DiskDatasync, Delay: time.Hour}},
			func(f *files.Set) {},
			holdfast.OutcomeUncertain,
		},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := onDisk(t, fault.NewDisk(wait.faults...), wait.options)
				var beside sync.WaitGroup
				beside.Go(func() { wait.begin(f) })
				synctest.Wait()
				ctx, cancel := context.WithTimeout(noContext, time.Second)
				defer cancel()
				began := time.Now()
				err := f.Append(ctx, "/mine", []byte("x"))
				if failed := failureOf(t, err, "/mine", context.DeadlineExceeded); failed.Outcome != wait.outcome {
					t.Errorf("%+v", failed)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
				beside.Wait()
			})
		})
	}
}

func TestReplacedFileIsReopenedByTheNextFlush(t *testing.T) {
	for _, p := range appendPolicies() {
		f := appending(t, files.Options{Policy: p})
		path := filepath.Join(t.TempDir(), "log")
		mustAppend(t, f, path, "old")
		if _, err := f.WriteFile(noContext, path, []byte("new "), files.Replace); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, f, path, "and on")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, "new and on")
	}
}

// lateDisk is a disk whose renames return some time after they have had their effect.
type lateDisk struct{ *fault.Disk }

func (d lateDisk) Rename(dir int, from, to sys.Name) error {
	defer time.Sleep(time.Second)
	return d.Disk.Rename(dir, from, to)
}

// slowDisk is a disk whose syncs of a file return some time after they have had their effect.
type slowDisk struct{ *fault.Disk }

func (d slowDisk) Datasync(fd int) error {
	defer time.Sleep(time.Second)
	return d.Disk.Datasync(fd)
}

// TestSyncThatOutlastsAReplacementTellsWhoTookTheName replaces a file while a sync of it runs: the
// sync finds it without a name, which this process has taken.
func TestSyncThatOutlastsAReplacementTellsWhoTookTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSet(slowDisk{fault.NewDisk()}, files.Options{Policy: holdfast.Periodic(time.Millisecond)})
		mustAppend(t, f, "/log", "old")
		time.Sleep(500 * time.Millisecond)
		if _, err := f.WriteFile(noContext, "/log", []byte("new "), files.Replace); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		mustAppend(t, f, "/log", "and on")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSyncBesideARenameTellsWhoTookTheName lets a sync find that a file has lost its name,
// before the rename of this process that took it has returned.
func TestSyncBesideARenameTellsWhoTookTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSet(lateDisk{fault.NewDisk()}, files.Options{Policy: holdfast.Periodic(time.Millisecond)})
		mustAppend(t, f, "/log", "old")
		if _, err := f.WriteFile(noContext, "/log", []byte("new "), files.Replace); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, f, "/log", "and on")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDirectoryWhoseNameMayBeLostTakesNothing(t *testing.T) {
	disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Path: "/", Times: 1, Err: syscall.EIO})
	f := onDisk(t, disk, files.Options{Policy: holdfast.EachDurable(), MkdirAll: true})
	for _, path := range []string{"/x/log", "/x/log", "/x/y/other"} {
		failureOf(t, f.Append(noContext, path, []byte("x")), path, syscall.EIO)
	}
	mustAppend(t, f, "/z/log", "durable")
}

// TestAFailedSyncRefusesDirectoriesThatAreFoundLater: it may have lost the names that others gave, and no later sync tells.
func TestAFailedSyncRefusesDirectoriesThatAreFoundLater(t *testing.T) {
	disk := fault.NewDisk()
	for _, dir := range []string{"/x", "/x/known", "/x/found"} {
		disk.MkdirAll(dir)
	}
	options := files.Options{Policy: holdfast.EachDurable(), MkdirAll: true, Retry: once}
	f := onDisk(t, disk, options)
	beside := besideFiles(disk, f, options)
	defer closeFiles(t, beside)
	mustAppend(t, f, "/x/known/log", "durable")
	disk.Add(fault.DiskFault{Op: fault.DiskSync, Path: "/x", Times: 1, Err: syscall.EIO})
	failureOf(t, f.Append(noContext, "/x/new/log", []byte("x")), "/x/new/log", syscall.EIO)
	mustAppend(t, f, "/x/known/other", "durable")
	mustAppend(t, f, "/x/newer/log", "durable")
	for _, set := range []*files.Set{f, beside} {
		err := set.Append(noContext, "/x/found/log", []byte("x"))
		if !errors.Is(err, durable.ErrDirLost) || !strings.Contains(err.Error(), "found may be lost: another sync of the directory failed: rename it") {
			t.Errorf("the directory's name may be lost, and Append says %v", err)
		}
	}
}

func TestErrseqDescriptorOfAFailureIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskSyncAll, Delay: 10 * time.Millisecond},
			fault.DiskFault{Op: fault.DiskDatasync, Path: "0", Delay: 10 * time.Millisecond, Times: 1})
		disk.SetSyncsAll("/", true)
		f := onDisk(t, disk, files.Options{Policy: holdfast.Durable(), Handles: 64})
		var all sync.WaitGroup
		step := func(paths ...int) {
			for _, i := range paths {
				all.Go(func() { f.Append(noContext, fmt.Sprint("/", i), []byte("x")) })
			}
			synctest.Wait()
		}
		others := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
		step(0)         // is synced by itself, until 10 ms
		step(others...) // together, from then to 20 ms
		time.Sleep(13 * time.Millisecond)
		step(others...)
		all.Go(func() { failureOf(t, f.Append(noContext, "/lost", []byte("x")), "/lost", syscall.EIO) })
		synctest.Wait()
		f.Flush(noContext) // so that it is in the kernel before it is its turn
		disk.Lose("/lost", syscall.EIO)
		all.Wait()
		if disk.Count(fault.DiskSyncAll) == 0 {
			t.Error("nothing was synced together")
		}
	})
}

// TestFilesOnOtherFileSystemsAreSyncedByThemselves appends to many files of one file system
// and to one of another, and syncs them all together.
func TestFilesOnOtherFileSystemsAreSyncedByThemselves(t *testing.T) {
	disk := fault.NewDisk()
	if err := disk.Mount("/other"); err != nil {
		t.Fatal(err)
	}
	f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 4 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}, Handles: 64})
	for i := range 2 * durable.FewOpenFiles {
		mustAppend(t, f, fmt.Sprint("/", i), "x")
	}
	// The file system of the first open file is the one that is synced as a whole.
	if err := f.Flush(noContext); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, "/other/file", "x")
	if err := f.Sync(noContext); err != nil {
		t.Fatal(err)
	}
	if disk.Count(fault.DiskSyncAll) == 0 {
		t.Error("nothing was synced together")
	}
	for seed := range uint64(20) {
		image := disk.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		if data, ok := image.File("/other/file"); !ok || string(data) != "x" {
			t.Fatalf("after a power cut the file on the other file system is %q, %v", data, ok)
		}
	}
}

// TestAnAppendWhoseStepHasFailedWaitsForTheNext: another call writes what the step could not, while the step still syncs
// another file. So no failure is left to report, and the bytes are not durable yet.
func TestAnAppendWhoseStepHasFailedWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := fault.NewDisk(fault.DiskFault{Op: fault.DiskDatasync, Delay: time.Second},
			fault.DiskFault{Op: fault.DiskWrite, Path: "a", First: 2, Times: 1, Err: syscall.EIO})
		f := onDisk(t, disk, files.Options{Policy: holdfast.Durable()})
		mustAppend(t, f, "/a", "zero\n") // so that the file is open
		var all sync.WaitGroup
		appends := func(path, data string) {
			all.Go(func() {
				if err := f.Append(noContext, path, []byte(data)); err != nil {
					t.Errorf("Append of %q to %s: %v", data, path, err)
				}
				if data == "one\n" && disk.Count(fault.DiskDatasync) < 4 {
					t.Error("it returned before its own sync")
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		appends("/first", "x\n")
		appends("/a", "one\n") // these two are in one step, which begins after a second
		appends("/other", "x\n")
		time.Sleep(time.Second)
		appends("/a", "two\n")
		all.Wait()
		wantOnDisk(t, disk, "/a", "zero\none\ntwo\n")
	})
}
