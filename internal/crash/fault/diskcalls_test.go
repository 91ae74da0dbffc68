//go:build go1.25

package fault_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

func TestDiskFaultHitsJustItsCalls(t *testing.T) {
	check := func(x fault.DiskFault, want string) {
		t.Helper()
		d := fault.NewDisk()
		must(t, d.MkdirAll("/logs"))
		logs := openDir(t, d, "logs")
		d.Add(x)
		got := ""
		for _, base := range []string{"a", "b.tmp", "b.tmp", "a"} {
			_, err := d.OpenFile(logs, name(base), appending, 0o666)
			got += map[bool]string{true: ".", false: "!"}[err == nil]
		}
		err := d.Rename(logs, name("b.tmp"), name("c"))
		got += map[bool]string{true: ".", false: "!"}[err == nil]
		if got != want {
			t.Errorf("%+v: calls %s, want %s", x, got, want)
		}
	}
	err := syscall.EIO
	check(fault.DiskFault{Op: fault.DiskOpen, Err: err}, "!!!!!") // there is no b.tmp then
	check(fault.DiskFault{Op: fault.DiskOpen, Err: err, First: 1, Times: 2}, "!!...")
	check(fault.DiskFault{Op: fault.DiskOpen, Err: err, First: 4}, "...!.")
	check(fault.DiskFault{Op: fault.DiskOpen, Err: err, Path: "logs/a"}, "!..!.")
	check(fault.DiskFault{Op: fault.DiskOpen, Err: err, Path: "/logs/a", First: 2}, "...!.")
	check(fault.DiskFault{Op: fault.DiskOpen, Err: err, Path: "*.tmp", First: 2, Times: 1}, "..!..")
	check(fault.DiskFault{Op: fault.DiskOpen, Err: err, Path: "/a"}, ".....")
	check(fault.DiskFault{Op: fault.DiskRename, Err: err}, "....!")
	check(fault.DiskFault{Op: fault.DiskRename, Err: err, Path: "c"}, "....!")
	check(fault.DiskFault{Op: fault.AnyDiskOp, Err: err, First: 5}, "....!")
	check(fault.DiskFault{Op: fault.DiskSync, Err: err}, ".....")
}

// A prepared disk has a file /d/f with the bytes abc, which is open, as is /d.
type prepared struct {
	*fault.Disk
	dir, file int
}

func prepare(t *testing.T) prepared {
	t.Helper()
	d := fault.NewDisk()
	must(t, d.MkdirAll("/d"))
	must(t, d.WriteFile("/d/f", []byte("abc"), 0o640))
	dir := openDir(t, d, "/d")
	return prepared{d, dir, openFile(t, d, dir, "f", appending)}
}

// everyCall makes each call once.
var everyCall = map[fault.DiskOp]func(d prepared) error{
	fault.DiskOpenDir:      func(d prepared) error { _, err := d.OpenDir(name("d")); return err },
	fault.DiskOpen:         func(d prepared) error { _, err := d.OpenFile(d.dir, name("n"), appending, 0o600); return err },
	fault.DiskWrite:        func(d prepared) error { _, err := d.Write(d.file, []byte("x")); return err },
	fault.DiskTruncate:     func(d prepared) error { return d.Truncate(d.file, 0) },
	fault.DiskSync:         func(d prepared) error { return d.Sync(d.file) },
	fault.DiskDatasync:     func(d prepared) error { return d.Datasync(d.file) },
	fault.DiskSyncAll:      func(d prepared) error { return d.SyncAll(d.file) },
	fault.DiskClose:        func(d prepared) error { return d.Close(d.file) },
	fault.DiskRename:       func(d prepared) error { return d.Rename(d.dir, name("f"), name("g")) },
	fault.DiskRemove:       func(d prepared) error { return d.Remove(d.dir, name("f")) },
	fault.DiskStat:         func(d prepared) error { _, err := d.Stat(d.dir, name("f")); return err },
	fault.DiskStatFD:       func(d prepared) error { _, err := d.StatFD(d.file); return err },
	fault.DiskStatPath:     func(d prepared) error { _, err := d.StatPath(name("/d/f")); return err },
	fault.DiskChmod:        func(d prepared) error { return d.Chmod(d.file, 0o600) },
	fault.DiskChown:        func(d prepared) error { return d.Chown(d.file, 1, 2) },
	fault.DiskMkdir:        func(d prepared) error { return d.Mkdir(name("/d/e"), 0o777) },
	fault.DiskResolve:      func(d prepared) error { _, err := d.Resolve("/d/f"); return err },
	fault.DiskOpenForNames: func(d prepared) error { _, err := d.OpenForNames(name("d")); return err },
	fault.DiskReadNames:    func(d prepared) error { _, err := d.ReadNames(d.dir, nil, nil); return err },
	fault.DiskLock:         func(d prepared) error { return d.Lock(d.file) },
	fault.DiskAttribute:    func(d prepared) error { return d.SetAttribute(d.file, "user.a", nil) },
	fault.DiskRead:         func(d prepared) error { _, err := d.ReadAt(d.file, make([]byte, 2), 1); return err },
}

// TestWritesAtAnOffsetAreDurableOnlyWhenAsked, and only alone.
func TestWritesAtAnOffsetAreDurableOnlyWhenAsked(t *testing.T) {
	d := prepare(t)
	survives := func(want bool, text string) {
		t.Helper()
		always := true
		for seed := range uint64(30) {
			data, _ := d.PowerCut(rand.New(rand.NewPCG(seed, 0))).File("/d/f")
			always = always && bytes.Contains(data, []byte(text))
		}
		if always != want {
			t.Errorf("%s survives: %v", text, always)
		}
	}
	must := func(n int, err error) {
		t.Helper()
		if n != 2 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := d.Sync(d.file); err != nil {
		t.Fatal(err)
	}
	must(d.WriteAtDurably(d.file, []byte("12"), 1))
	holds(t, d.Disk, "d/f", "a12")
	if err := d.Sync(d.dir); err != nil {
		t.Fatal(err)
	}
	survives(true, "a12")
	must(d.WriteAt(d.file, []byte("34"), 1))
	survives(false, "34")
	p := make([]byte, 9)
	must(d.ReadAt(d.file, p, 1))
	if string(p[:2]) != "34" || len(d.Violations()) > 0 {
		t.Errorf("%q, %v", p, d.Violations())
	}
	must(d.WriteAtDurably(d.file, []byte("56"), 3))
	if len(d.Violations()) != 1 {
		t.Error("a durable write behind one that is not is no violation")
	}
	d.Add(fault.DiskFault{Op: fault.DiskWrite, Take: 1, Err: syscall.EIO})
	if n, err := d.WriteAtDurably(d.file, []byte("xy"), 0); n != 1 || !errors.Is(err, syscall.EIO) {
		t.Error(n, err)
	}
	survives(false, "x")
	holds(t, d.Disk, "d/f", "x3456")
}

func TestEveryCallFailsWithoutEffectAsItsFaultSays(t *testing.T) {
	for _, op := range fault.DiskOps() {
		d, call := prepare(t), everyCall[op]
		d.Add(fault.DiskFault{Op: op, Times: 2, Err: syscall.EIO})
		err := call(d)
		var of *fault.DiskError
		if !errors.As(err, &of) || of.Op != op || !errors.Is(err, syscall.EIO) || d.Count(op) == 0 {
			t.Errorf("%v: err = %v", op, err)
		}
		is, err := d.StatPath(name("d/f"))
		if m := d.ProcessCrash(); len(m.Files) != 1 || string(m.Files["/d/f"]) != "abc" || len(m.Dirs) != 2 {
			t.Errorf("%v: leaves %+v", op, m)
		}
		if op != fault.DiskStatPath && (err != nil || is.Mode != 0o100640 || is.UID != 1000) {
			t.Errorf("%v: leaves %+v, %v", op, is, err)
		}
		if want := map[bool]int{true: 1, false: 2}[op == fault.DiskClose]; d.Open() != want {
			t.Errorf("%v: %d are open, want %d", op, d.Open(), want)
		}
		d.Mend()
		if err := call(d); err != nil && op != fault.DiskClose {
			t.Errorf("%v: mended: %v", op, err)
		}
	}
}

func TestDiskWriteTakesWhatTheFaultSays(t *testing.T) {
	d := prepare(t)
	check := func(x fault.DiskFault, p string, want int, wantErr error) {
		t.Helper()
		d.Mend()
		x.Op = fault.DiskWrite
		d.Add(x)
		if n, err := d.Write(d.file, []byte(p)); n != want || !errors.Is(err, wantErr) {
			t.Errorf("%+v: Write = %d, %v; want %d, %v", x, n, err, want, wantErr)
		}
	}
	check(fault.DiskFault{Take: 2}, "123", 2, nil)
	check(fault.DiskFault{}, "456", 0, nil)
	check(fault.DiskFault{Take: 1, Err: syscall.EIO}, "789", 1, syscall.EIO)
	check(fault.DiskFault{Take: fault.All}, "x", 1, nil)
	holds(t, d.Disk, "d/f", "abc127x")
}

func TestFullDiskTakesWhatFitsBeforeItFailsAndLifts(t *testing.T) {
	d := prepare(t)
	d.SetRoom(5)
	check := func(p string, want int, wantErr error) {
		t.Helper()
		if n, err := d.Write(d.file, []byte(p)); n != want || !errors.Is(err, wantErr) {
			t.Errorf("Write(%q) = %d, %v; want %d, %v", p, n, err, want, wantErr)
		}
	}
	check("1234", 2, nil)
	check("34", 0, syscall.ENOSPC)
	must(t, d.Truncate(d.file, 4))
	check("34", 1, nil)
	d.SetRoom(fault.Unlimited)
	check("4", 1, nil)
	holds(t, d.Disk, "d/f", "abc134")
	if d.Used() != 6 {
		t.Errorf("%d bytes are used", d.Used())
	}
	must(t, d.Remove(d.dir, name("f")))
	if d.Used() != 6 {
		t.Error("a file that is open takes no room")
	}
	must(t, d.Close(d.file))
	if d.Used() != 0 {
		t.Errorf("%d bytes are used when the file is gone", d.Used())
	}
}

func TestDescriptorsRunOut(t *testing.T) {
	d := prepare(t)
	d.SetDescriptors(3)
	third := openFile(t, d.Disk, d.dir, "g", appending)
	_, err := d.OpenFile(d.dir, name("h"), appending, 0o666)
	fails(t, err, syscall.EMFILE)
	_, err = d.OpenDir(name("/"))
	fails(t, err, syscall.EMFILE)
	if _, err := d.Stat(d.dir, name("h")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("the file was made: %v", err)
	}
	must(t, d.Close(third))
	openDir(t, d.Disk, "/")
	if d.Open() != 3 || d.MostOpen() != 3 {
		t.Errorf("%d open, %d at most", d.Open(), d.MostOpen())
	}
}

func TestDeniedPathIsRefused(t *testing.T) {
	d := prepare(t)
	must(t, d.MkdirAll("/secret"))
	d.Deny("secret", syscall.EACCES)
	d.Deny("/d/x*", syscall.EPERM)
	_, err := d.OpenDir(name("secret"))
	fails(t, err, syscall.EACCES)
	_, err = d.OpenFile(d.dir, name("x1"), appending, 0o666)
	fails(t, err, os.ErrPermission)
	fails(t, d.Rename(d.dir, name("f"), name("x")), syscall.EPERM)
	fails(t, d.Remove(d.dir, name("x")), syscall.EPERM)
	fails(t, d.Mkdir(name("d/x"), 0o777), syscall.EPERM)
	_, err = d.Stat(d.dir, name("x"))
	fails(t, err, syscall.ENOENT)
	d.Deny("/d/x*", nil)
	must(t, d.Mkdir(name("d/x"), 0o777))
	_, err = d.OpenDir(name("secret"))
	fails(t, err, syscall.EACCES)
}

func TestRenameFollowsPOSIX(t *testing.T) {
	d := prepare(t)
	must(t, d.WriteFile("d/g", []byte("g"), 0o644))
	must(t, d.MkdirAll("d/sub/in"))
	must(t, d.Mount("m"))
	rename := func(from, to string) error { return d.Rename(d.dir, name(from), name(to)) }
	fails(t, rename("none", "g"), syscall.ENOENT)
	fails(t, rename("f", "sub"), syscall.EISDIR)
	fails(t, rename("sub", "f"), syscall.ENOTDIR)
	fails(t, rename("f", "g/x"), syscall.ENOTDIR)
	fails(t, rename("f", "/m/f"), syscall.EXDEV)
	fails(t, rename("sub", "sub/in/x"), syscall.EINVAL)
	fails(t, rename("/m", "sub"), syscall.EXDEV)
	must(t, d.Link("d/f", "d/f2"))
	must(t, rename("f", "f2")) // of one file: both names stay
	holds(t, d.Disk, "d/f", "abc")
	must(t, rename("f", "g"))
	holds(t, d.Disk, "d/g", "abc")
	if _, err := d.ReadFile("d/f"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("the old name is there: %v", err)
	}
	if s, _ := d.StatFD(d.file); s.Links != 2 || d.Used() != 3 {
		t.Errorf("%d links, %d bytes used", s.Links, d.Used())
	}
}

func TestHardLinksAreOneFile(t *testing.T) {
	d := prepare(t)
	must(t, d.Link("/d/f", "/l"))
	put(t, d.Disk, openFile(t, d.Disk, openDir(t, d.Disk, "/"), "l", appending), "d")
	holds(t, d.Disk, "/d/f", "abcd")
	one, err := d.Stat(d.dir, name("f"))
	must(t, err)
	two, err := d.StatPath(name("l"))
	must(t, err)
	if one != two || one.Links != 2 || one.Size != 4 || one.Inode == 0 || one.Device == 0 {
		t.Errorf("%+v and %+v", one, two)
	}
	must(t, d.Remove(d.dir, name("f")))
	if s, _ := d.StatFD(d.file); s.Links != 1 {
		t.Errorf("%d links after one was removed", s.Links)
	}
}

func TestSymbolicLinksAreFollowedByOpenAndNotByStat(t *testing.T) {
	d := prepare(t)
	must(t, d.Symlink("f", "/d/s"))
	must(t, d.Symlink("/d", "/way"))
	must(t, d.Symlink("../new", "/d/dangling"))
	must(t, d.Symlink("loop", "/loop"))
	put(t, d.Disk, openFile(t, d.Disk, openDir(t, d.Disk, "/way"), "s", appending), "d")
	holds(t, d.Disk, "d/f", "abcd")
	s, err := d.Stat(d.dir, name("s"))
	if err != nil || s.Mode != 0o120777 || s.Size != 1 {
		t.Errorf("Stat = %+v, %v", s, err)
	}
	if s, err := d.StatPath(name("way/s")); err != nil || s.Size != 4 {
		t.Errorf("StatPath = %+v, %v", s, err)
	}
	resolves := func(path, want string) {
		t.Helper()
		if got, err := d.Resolve(path); got != want || err != nil {
			t.Errorf("Resolve(%s) = %q, %v; want %q", path, got, err, want)
		}
	}
	resolves("way/s", "d/f")
	resolves("/way/s", "/d/f")
	resolves("/way/../d/./dangling", "/new")
	resolves("none", "none")
	resolves("/", "/")
	_, err = d.Resolve("loop")
	fails(t, err, syscall.ELOOP)
	_, err = d.Resolve("none/x")
	fails(t, err, syscall.ENOENT)
	_, err = d.OpenFile(d.dir, name("dangling"), appending|os.O_EXCL, 0o666)
	fails(t, err, syscall.EEXIST)
	must(t, d.Close(openFile(t, d.Disk, d.dir, "dangling", appending)))
	holds(t, d.Disk, "/new", "")
	must(t, d.Remove(d.dir, name("s")))
	holds(t, d.Disk, "d/f", "abcd")
}

func TestDirectoryMovesAndGoesUnderItsDescriptor(t *testing.T) {
	d := prepare(t)
	must(t, d.Move("/d", "/e"))
	openFile(t, d.Disk, d.dir, "late", appending)
	holds(t, d.Disk, "/e/late", "")
	if _, err := d.StatPath(name("/d")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("the old path is there: %v", err)
	}
	must(t, d.RemoveAll("/e"))
	_, err := d.OpenFile(d.dir, name("later"), appending, 0o666)
	fails(t, err, syscall.ENOENT)
	if s, err := d.StatFD(d.dir); err != nil || s.Links != 0 {
		t.Errorf("a removed directory is %+v, %v", s, err)
	}
	put(t, d.Disk, d.file, "x")
	if s, err := d.StatFD(d.file); err != nil || s.Links != 0 || s.Size != 4 {
		t.Errorf("a removed file is %+v, %v", s, err)
	}
	must(t, d.Close(d.file))
	if d.Used() != 0 {
		t.Errorf("%d bytes are used", d.Used())
	}
}

func TestMountIsADeviceOfItsOwn(t *testing.T) {
	d := prepare(t)
	must(t, d.Mount("/srv/m"))
	root, err := d.StatPath(name("/srv"))
	must(t, err)
	mount, err := d.StatPath(name("/srv/m"))
	must(t, err)
	up, err := d.StatPath(name("/srv/m/.."))
	must(t, err)
	if root.Device == mount.Device || up != root {
		t.Errorf("%+v in %+v, up %+v", mount, root, up)
	}
	if err := d.Link("/d/f", "/srv/m/f"); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("Link = %v", err)
	}
	d.SetSyncsAll("/srv/m", false)
	if !d.SyncsAll(d.dir) || d.SyncsAll(openDir(t, d.Disk, "/srv/m")) {
		t.Error("SyncsAll is not of one device")
	}
}

func TestPermissionsAndOwnersAreKept(t *testing.T) {
	d := prepare(t)
	must(t, d.Chmod(d.file, 0o4711))
	must(t, d.Chown(d.file, 7, 8))
	if s, _ := d.StatFD(d.file); s.Mode != 0o104711 || s.UID != 7 || s.GID != 8 {
		t.Errorf("%+v", s)
	}
	if s, _ := d.StatFD(openFile(t, d.Disk, d.dir, "n", appending)); s.Mode != 0o100644 {
		t.Errorf("a new file has mode %o", s.Mode)
	}
	must(t, d.Mkdir(name("/n"), 0o777))
	if s, _ := d.StatPath(name("/n")); s.Mode != 0o040755 {
		t.Errorf("a new directory has mode %o", s.Mode)
	}
	fails(t, d.Mkdir(name("/n"), 0o777), syscall.EEXIST)
	fails(t, d.Mkdir(name("/none/n"), 0o777), syscall.ENOENT)
}

func TestDirtyCountsWhatIsNotOnTheDisk(t *testing.T) {
	d := prepare(t)
	check := func(want int64, wantOK bool) {
		t.Helper()
		if n, ok := d.Dirty(); n != want || ok != wantOK {
			t.Errorf("Dirty = %d, %v; want %d, %v", n, ok, want, wantOK)
		}
	}
	check(0, true)
	put(t, d.Disk, d.file, "12")
	check(2, true)
	d.SetDirty(40)
	check(42, true)
	must(t, d.Sync(d.file))
	check(40, true)
	d.SetDirty(-1)
	check(0, false)
}

// A witness must be open before what it is to hear of.
func TestLossIsReportedOnceToEachOpenDescriptor(t *testing.T) {
	d := prepare(t)
	other := openFile(t, d.Disk, d.dir, "f", appending)
	put(t, d.Disk, d.file, "x")
	d.Lose("/d/f", syscall.EIO)
	late := openFile(t, d.Disk, d.dir, "f", appending)
	lateDir := openDir(t, d.Disk, "/d")
	must(t, d.Sync(late))
	must(t, d.SyncAll(lateDir))
	fails(t, d.SyncAll(d.dir), syscall.EIO)
	fails(t, d.Sync(other), syscall.EIO)
	fails(t, d.Sync(d.file), syscall.EIO)
	must(t, d.Sync(d.file))
	leaves(t, d.Disk, "d/f", "abc0")
}

func TestDiskRecordsWhatItsUserMustNotDo(t *testing.T) {
	check := func(want string, do func(d prepared)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := prepare(t)
			must(t, d.Link("/d/f", "/d/g"))
			d.Add(fault.DiskFault{Op: fault.DiskWrite, Take: fault.All, Delay: time.Second})
			do(d)
			if got := strings.Join(d.Violations(), "; "); got != want {
				t.Errorf("violations %q, want %q", got, want)
			}
		})
	}
	both := func(a, b func()) {
		var group sync.WaitGroup
		group.Go(a)
		synctest.Wait()
		group.Go(b)
		group.Wait()
	}
	check("", func(d prepared) {
		d.Write(d.file, []byte("a"))
		d.Sync(d.file)
		d.Sync(d.file)
		d.Close(d.file)
	})
	check("write 1 of /d/f: descriptor 4 is closed; close 2 of /d/f: descriptor 4 is closed; rename 1 of /x: descriptor 99 was never open", func(d prepared) {
		d.Close(d.file)
		if n, err := d.Write(d.file, []byte("a")); n != 0 || !errors.Is(err, syscall.EBADF) {
			t.Errorf("Write = %d, %v", n, err)
		}
		fails(t, d.Close(d.file), syscall.EBADF)
		fails(t, d.Rename(99, name("x"), name("y")), syscall.EBADF)
	})
	check("write 2 of /d/g: another write to the file is in flight", func(d prepared) {
		other, _ := d.OpenFile(d.dir, name("g"), appending, 0o666)
		both(func() { d.Write(d.file, []byte("a")) }, func() { d.Write(other, []byte("b")) })
	})
	check("close 1 of /d/f: 1 calls on the descriptor are in flight", func(d prepared) {
		both(func() { d.Write(d.file, []byte("a")) }, func() { d.Close(d.file) })
	})
	check("sync 2 of /d/f: a sync of the descriptor failed before", func(d prepared) {
		d.Add(fault.DiskFault{Op: fault.DiskSync, Times: 1, Err: syscall.EIO})
		d.Sync(d.file)
		other, _ := d.OpenFile(d.dir, name("f"), appending, 0o666)
		d.SyncAll(other)
		d.Sync(d.file)
	})
	check("write 1 of /d/f: no bytes", func(d prepared) { d.Write(d.file, nil) })
	check("write 1 of /d/f: its bytes changed while it was in flight", func(d prepared) {
		p := []byte("a")
		d.Watch(func(fault.DiskCall) { p[0] = 'b' })
		d.Write(d.file, p)
	})
	check("open 2 of /d/h: 3 descriptors, of 2", func(d prepared) {
		d.SetCap(2)
		d.OpenFile(d.dir, name("h"), appending, 0o666)
	})
}

func TestDescriptorsCountWhileTheyAreOpenedAndClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := prepare(t)
		d.Add(fault.DiskFault{Op: fault.AnyDiskOp, Delay: time.Second})
		var group sync.WaitGroup
		group.Go(func() { d.Close(d.file) })
		group.Go(func() { d.OpenDir(name("none")) })
		synctest.Wait()
		if d.Open() != 3 {
			t.Errorf("%d descriptors, want one open, one in close, one in open", d.Open())
		}
		group.Wait()
		if d.Open() != 1 || d.MostOpen() != 3 {
			t.Errorf("%d open, %d at most", d.Open(), d.MostOpen())
		}
	})
}

func TestDiskCallsTellWhatHappenedWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := prepare(t)
		before := len(d.Calls())
		d.Add(fault.DiskFault{Op: fault.DiskWrite, Take: 2, Delay: 3 * time.Second})
		var watched []fault.DiskCall
		d.Watch(func(c fault.DiskCall) { watched = append(watched, c) })
		start := time.Now()
		d.Write(d.file, []byte("abc"))
		d.Rename(d.dir, name("f"), name("g"))
		calls := d.Calls()[before:]
		want := []fault.DiskCall{
			{Op: fault.DiskWrite, N: 1, FD: d.file, Path: "/d/f", Len: 3, Bytes: 2, Start: start, End: start.Add(3 * time.Second)},
			{Op: fault.DiskRename, N: 1, FD: d.dir, Path: "/d/f", To: "/d/g", Start: start.Add(3 * time.Second), End: start.Add(3 * time.Second)},
		}
		if !slices.Equal(calls, want) {
			t.Errorf("calls %+v, want %+v", calls, want)
		}
		if len(watched) != 4 || !watched[0].End.IsZero() || watched[1] != want[0] || watched[3] != want[1] {
			t.Errorf("watched %+v", watched)
		}
		if d.Count(fault.DiskRename) != 1 || d.Count(fault.AnyDiskOp) != before+2 {
			t.Errorf("counts %d %d", d.Count(fault.DiskRename), d.Count(fault.AnyDiskOp))
		}
	})
}
