package powercut

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// onTree starts this test's program with a mode, in a user namespace of its own, where the working
// directory is a tree. It returns what the mode printed, and the log.
func onTree(t testing.TB, mode string) (out []byte, log []logged) {
	t.Helper()
	dir := t.TempDir()
	cmd := child("tree", dir, mode)
	how := cmd.SysProcAttr
	how.Cloneflags = syscall.CLONE_NEWUSER
	how.Unshareflags = syscall.CLONE_NEWNS
	how.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	how.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	how.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skipf("user namespaces are refused: %v", err)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if err == nil {
		log, err = parseLog(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, log
}

// treeThere mounts a tree that another process serves, and works there.
func treeThere() (err error) {
	dir := os.Args[1]
	point := filepath.Join(dir, "tree")
	log, logErr := os.Create(filepath.Join(dir, "log"))
	device, err := openFuse()
	if err := errors.Join(os.Mkdir(point, 0o700), logErr, err); err != nil {
		return err
	}
	server := child("served")
	server.ExtraFiles = []*os.File{os.NewFile(uintptr(device), "fuse"), log}
	server.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	begin, err := server.StdinPipe()
	if err := errors.Join(err, server.Start()); err != nil {
		return err
	}
	err = errors.Join(mountTree(device, point, "holdfast-test"), begin.Close(), unix.Close(device), os.Chdir(point))
	if err != nil {
		return err
	}
	work := map[string]func() error{"calls": func() error { return calls(os.Stdout) }, "chance": func() error { return byChance(os.Stdout) },
		"order": inOrder, "speed": speed}[os.Args[2]]
	if err := errors.Join(work(), os.Chdir("/"), unix.Unmount(point, 0)); err != nil {
		return err // the server ends with this process
	}
	return server.Wait()
}

func servedThere() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, (&treeServer{server: server{device: 3, file: 4, notes: func() uint64 { return 7 }}}).serve())
}

// calls makes many system calls in the working directory, and prints what each of them returned.
func calls(out io.Writer) error {
	say := func(what string, args ...any) { fmt.Fprintf(out, what+"\n", args...) }
	did := func(what string, err error) { say("%s: %v", what, err) }
	open := func(name string, flags int) int {
		fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o640)
		did(fmt.Sprintf("open %s %x", name, flags), err)
		return fd
	}
	stat := func(name string) {
		var s unix.Stat_t
		err := unix.Lstat(name, &s)
		if s.Mode&unix.S_IFMT == unix.S_IFDIR {
			s.Size, s.Nlink = 0, 0 // each file system has its own
		}
		say("stat %s: %o, %d bytes, %d links, owner %v, %v", name, s.Mode, s.Size, s.Nlink, s.Uid == uint32(os.Geteuid()), err)
	}
	read := func(fd int, at int64, n int) {
		b := make([]byte, n)
		n, err := unix.Pread(fd, b, at)
		say("read: %q, %v", b[:max(0, n)], err)
	}
	list := func(dir string) {
		entries, err := os.ReadDir(dir)
		var names []string
		for _, e := range entries {
			names = append(names, fmt.Sprint(e.Name(), " ", e.IsDir()))
		}
		say("list %s: %v, %v", dir, names, err)
	}
	unix.Umask(0o022)
	// Files.
	f := open("a", unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	open("a", unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	open("none", unix.O_RDONLY)
	open(strings.Repeat("n", 256), unix.O_RDWR|unix.O_CREAT)
	n, err := unix.Write(f, []byte("hello"))
	say("write: %d, %v", n, err)
	n, err = unix.Pwrite(f, []byte("there"), 10)
	say("write behind the end: %d, %v", n, err)
	read(f, 0, 100)
	read(f, 100, 10)
	stat("a")
	did("truncate", unix.Ftruncate(f, 3))
	did("truncate", unix.Ftruncate(f, 6))
	did("truncate", unix.Ftruncate(f, -1))
	read(f, 0, 100)
	did("allocate", unix.Fallocate(f, 0, 4, 4))
	did("allocate behind the end", unix.Fallocate(f, unix.FALLOC_FL_KEEP_SIZE, 0, 100))
	stat("a")
	did("fsync", unix.Fsync(f))
	did("fdatasync", unix.Fdatasync(f))
	did("poll", func() error { _, err := unix.Poll([]unix.PollFd{{Fd: int32(f), Events: unix.POLLIN}}, -1); return err }())
	did("lock", unix.Flock(f, unix.LOCK_EX|unix.LOCK_NB))
	end, err := unix.Seek(f, 0, unix.SEEK_END)
	say("seek: %d, %v", end, err)
	appended := open("a", unix.O_WRONLY|unix.O_APPEND)
	big := bytes.Repeat([]byte("0123456789abcdef"), 3<<16) // 3 MiB
	n, err = unix.Write(appended, big)
	say("append: %d, %v", n, err)
	back, err := os.ReadFile("a")
	say("read of all: %d bytes, %v, %v", len(back), bytes.Equal(back[8:], big), err)
	truncated := open("a", unix.O_WRONLY|unix.O_TRUNC)
	stat("a")
	did("chmod", unix.Chmod("a", 0o600))
	stat("a")
	did("times", unix.UtimesNano("a", []unix.Timespec{{Sec: 12, Nsec: 34}, {Sec: 56, Nsec: 78}}))
	var s unix.Stat_t
	did("stat", unix.Stat("a", &s))
	say("times: %v %v", s.Atim, s.Mtim)
	did("owner", unix.Chown("a", os.Geteuid(), os.Getegid()))
	// Mapped memory.
	did("truncate", unix.Ftruncate(f, 4096))
	m, err := unix.Mmap(f, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	did("map", err)
	if err == nil {
		copy(m[100:], "mapped")
		did("msync", unix.Msync(m, unix.MS_SYNC))
		did("unmap", unix.Munmap(m))
	}
	read(f, 98, 10)
	// Links and names.
	did("link", unix.Link("a", "b"))
	did("link to what is there", unix.Link("a", "b"))
	did("link to nothing", unix.Link("none", "c"))
	stat("b")
	did("rename", unix.Rename("b", "c"))
	did("rename to its other name", unix.Rename("a", "c"))
	did("rename of nothing", unix.Rename("b", "d"))
	list(".")
	did("unlink", unix.Unlink("a"))
	stat("c")
	did("unlink of an open file", unix.Unlink("c"))
	read(f, 98, 10)
	did("fstat", unix.Fstat(f, &s))
	say("links of what has no name: %d", s.Nlink)
	did("write to what has no name", func() error { _, err := unix.Write(f, []byte("x")); return err }())
	// Directories.
	did("mkdir", unix.Mkdir("d", 0o750))
	did("mkdir of what is there", unix.Mkdir("d", 0o750))
	did("mkdir below", unix.Mkdir("d/e", 0o777))
	stat("d")
	did("unlink of a directory", unix.Unlink("d"))
	did("rmdir of a full one", unix.Rmdir("d"))
	did("rename below itself", unix.Rename("d", "d/e/f"))
	did("file", os.WriteFile("d/e/file", []byte("text"), 0o600))
	did("rename of a directory to a file", unix.Rename("d", "d/e/file"))
	did("rename to another directory", unix.Rename("d/e/file", "file"))
	did("rename over a file", os.WriteFile("other", []byte("other"), 0o600))
	did("rename over a file", unix.Rename("other", "file"))
	stat("file")
	text, err := os.ReadFile("file")
	say("the file is %q, %v", text, err)
	did("rename of a file to a directory", unix.Rename("file", "d"))
	did("rename of a directory", unix.Rename("d/e", "g"))
	did("mkdir", unix.Mkdir("g/h", 0o777))
	did("rename to a full directory", unix.Rename("d", "g"))
	did("rename that must not replace", unix.Renameat2(unix.AT_FDCWD, "d", unix.AT_FDCWD, "g", unix.RENAME_NOREPLACE))
	did("exchange", unix.Renameat2(unix.AT_FDCWD, "file", unix.AT_FDCWD, "g", unix.RENAME_EXCHANGE))
	did("exchange with nothing", unix.Renameat2(unix.AT_FDCWD, "file", unix.AT_FDCWD, "none", unix.RENAME_EXCHANGE))
	stat("file")
	list("file")
	list(".")
	list("..none")
	for i := range 300 {
		did("many", os.WriteFile(fmt.Sprintf("d/%d%s", i, strings.Repeat("x", 100)), nil, 0o600))
	}
	entries, err := os.ReadDir("d")
	say("%d names, %v, in order %v", len(entries), err, slices.IsSortedFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }))
	dir := open("d", unix.O_RDONLY|unix.O_DIRECTORY)
	did("fsync of a directory", unix.Fsync(dir))
	did("remove of all", os.RemoveAll("d"))
	did("fsync of one that was removed", unix.Fsync(dir))
	file, err := unix.Openat(dir, "late", unix.O_CREAT|unix.O_WRONLY, 0o600)
	say("open in one that was removed: %d, %v", file, err)
	list(".")
	// Files that have no name at first.
	nameless, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	did("a file without a name", err)
	did("write", func() error { _, err := unix.Write(nameless, []byte("nameless")); return err }())
	did("name", unix.Linkat(unix.AT_FDCWD, fmt.Sprint("/proc/self/fd/", nameless), unix.AT_FDCWD, "named", unix.AT_SYMLINK_FOLLOW))
	stat("named")
	text, err = os.ReadFile("named")
	say("the file is %q, %v", text, err)
	did("copy of a range", func() error {
		_, err := unix.CopyFileRange(nameless, new(int64), f, new(int64), 8, 0)
		return err
	}())
	read(f, 0, 8)
	did("device", unix.Mknod("device", unix.S_IFBLK|0o600, 1))
	// Files that one may not open.
	did("chmod", unix.Chmod("named", 0))
	open("named", unix.O_RDONLY)
	return errors.Join(unix.Close(appended), unix.Close(truncated), unix.Close(f), unix.Close(dir), unix.Close(nameless))
}

// byChance makes calls by chance on few names, and prints what they return.
func byChance(out io.Writer) error {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "d", "d/a", "d/b", "e", "e/a", "d/e", "d/e/a"}
	name := func() string { return names[r.IntN(len(names))] }
	var open []int
	for i := range 6000 {
		x, y, n := name(), name(), int64(r.IntN(9000))
		var err error
		var what any
		switch r.IntN(16) {
		case 0, 1, 2:
			var fd int
			flags := []int{0, unix.O_TRUNC, unix.O_EXCL, unix.O_APPEND}[r.IntN(4)]
			if fd, err = unix.Open(x, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|flags, 0o600); err == nil {
				open = append(open, fd)
			}
		case 3:
			err = unix.Mkdir(x, 0o700)
		case 4:
			err = unix.Unlink(x)
		case 5:
			err = unix.Rmdir(x)
		case 6, 7:
			err = unix.Rename(x, y)
		case 8:
			err = unix.Renameat2(unix.AT_FDCWD, x, unix.AT_FDCWD, y, []uint{unix.RENAME_EXCHANGE, unix.RENAME_NOREPLACE}[r.IntN(2)])
		case 9:
			err = unix.Link(x, y)
		case 10:
			err = unix.Truncate(x, n)
		case 11:
			entries, listErr := os.ReadDir(x)
			what, err = fmt.Sprint(entries), errors.Unwrap(listErr)
		case 12:
			data, readErr := os.ReadFile(x)
			what, err = crc32.ChecksumIEEE(data), errors.Unwrap(readErr)
		default:
			if len(open) == 0 {
				continue
			}
			k := r.IntN(len(open))
			switch fd := open[k]; r.IntN(6) {
			case 0:
				err = unix.Close(fd)
				open = slices.Delete(open, k, k+1)
			case 1:
				err = unix.Fsync(fd)
			case 2:
				var s unix.Stat_t
				err = unix.Fstat(fd, &s)
				what = fmt.Sprint(s.Size, s.Nlink)
			default:
				what, err = unix.Pwrite(fd, bytes.Repeat([]byte{byte(i)}, r.IntN(5000)), n)
			}
		}
		fmt.Fprintln(out, i, x, y, n, what, err)
	}
	for _, fd := range open {
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	return nil
}

// TestTreeAnswersAsARealFileSystem makes the same calls on a tree and on the file system of
// temporary files.
func TestTreeAnswersAsARealFileSystem(t *testing.T) {
	isolate.Fuse(t, func(t *testing.T) {
		for _, mode := range []string{"calls", "chance"} {
			out, _ := onTree(t, mode)
			want, err := child("real", t.TempDir(), mode).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, want)
			}
			a, b := strings.Split(string(out), "\n"), strings.Split(string(want), "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Errorf("%s: line %d is %q, and elsewhere %q", mode, i, a[i], b[i])
					break
				}
			}
			if len(a) != len(b) || len(a) < 300 {
				t.Errorf("%s: %d lines, and elsewhere %d", mode, len(a), len(b))
			}
		}
	})
}

func realThere() error {
	return errors.Join(os.Chdir(os.Args[1]), map[string]func(io.Writer) error{"calls": calls, "chance": byChance}[os.Args[2]](os.Stdout))
}

// inOrder makes each kind of entry.
func inOrder() error {
	dir, err := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	f, openErr := unix.Open("f", unix.O_WRONLY|unix.O_CREAT, 0o600)
	_, writeErr := unix.Pwrite(f, []byte("ab"), 5)
	return errors.Join(err, openErr, writeErr, unix.Fsync(f), unix.Ftruncate(f, 6), unix.Fdatasync(f), unix.Link("f", "g"),
		unix.Mkdir("d", 0o700), unix.Rename("g", "d/h"), unix.Fsync(dir), unix.Unlink("f"), unix.Close(f), unix.Close(dir))
}

func TestTreeLogsInOrder(t *testing.T) {
	isolate.Fuse(t, func(t *testing.T) {
		_, log := onTree(t, "order")
		if len(log) != 10 {
			t.Fatalf("%+v", log)
		}
		f, d := log[0].Edits[0].File, log[6].Edits[0].File
		want := []crash.Entry{
			{Op: crash.Name, Edits: []crash.Edit{{Dir: crash.Root, Name: "f", File: f}}},
			{Op: crash.Write, File: f, Offset: 5, Data: []byte("ab")},
			{Op: crash.Flush, File: f},
			{Op: crash.Resize, File: f, Offset: 6},
			{Op: crash.Flush, File: f},
			{Op: crash.Name, Edits: []crash.Edit{{Dir: crash.Root, Name: "g", File: f}}},
			{Op: crash.Name, Edits: []crash.Edit{{Dir: crash.Root, Name: "d", File: d}}},
			{Op: crash.Name, Edits: []crash.Edit{{Dir: crash.Root, Name: "g", File: 0}, {Dir: d, Name: "h", File: f}}},
			{Op: crash.Flush, File: crash.Root},
			{Op: crash.Name, Edits: []crash.Edit{{Dir: crash.Root, Name: "f", File: 0}}},
		}
		for i, e := range log {
			if e.At == 0 || e.notes != 7 {
				t.Errorf("entry %d has the time %d and %d notes", i, e.At, e.notes)
			}
			if e.At = 0; len(e.Data) == 0 {
				e.Data = nil
			}
			if !reflect.DeepEqual(e.Entry, want[i]) {
				t.Errorf("entry %d is %+v, want %+v", i, e, want[i])
			}
		}
		if f == d || d&crash.DirBit == 0 || f&crash.DirBit != 0 {
			t.Errorf("the numbers are %d and %d", f, d)
		}
	})
}

// speed times a write and a sync of it.
func speed() error {
	f, err := unix.Open("f", unix.O_WRONLY|unix.O_CREAT, 0o600)
	if err != nil {
		return err
	}
	data := make([]byte, 200)
	const warm, rounds = 2000, 20_000
	var began time.Time
	for i := range warm + rounds {
		if i == warm {
			began = time.Now()
		}
		_, err := unix.Pwrite(f, data, int64(i%1000*len(data)))
		if err := errors.Join(err, unix.Fsync(f)); err != nil {
			return err
		}
	}
	fmt.Printf("%v", time.Since(began)/rounds)
	return unix.Close(f)
}

// BenchmarkTreeWriteAndSync measures what a write and a sync take through the server.
func BenchmarkTreeWriteAndSync(b *testing.B) {
	if unix.Access("/dev/fuse", unix.R_OK|unix.W_OK) != nil {
		b.Skip("/dev/fuse can't be opened")
	}
	for b.Loop() {
		out, _ := onTree(b, "speed")
		each, err := time.ParseDuration(string(out))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(each)/1e3, "µs/sync")
	}
}
