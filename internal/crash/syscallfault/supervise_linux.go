//go:build amd64 || arm64

package syscallfault

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Call is a system call that waits for its supervisor. It is valid until the function that Start was given returns.
type Call struct {
	Kind   Kind
	Name   string // such as pwrite64
	Path   string // of the file, as far as it is known; a name is not followed
	Number int    // its number within its kind, from 1
	Serial int    // among all, from 1
	// Mapped says of msync what parts of files it is about.
	Mapped []Part
	// Delay makes the call later. Others are answered meanwhile.
	Delay time.Duration

	s      *Supervisor
	task   int // the thread
	at     operand
	args   [6]uint64
	answer response
}

// A Part is some bytes of a file, which is known by the number of its inode.
type Part struct {
	Inode    uint64
	From, To int64
}

// notice and response are struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h.
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	data  call
}

// call is struct seccomp_data.
type call struct {
	number int32
	arch   uint32
	ip     uint64
	args   [6]uint64
}

type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// Fail answers the call by an error. It is not made.
func (c *Call) Fail(e unix.Errno) { c.answer.err, c.answer.flags = -int32(e), 0 }

// Shorten writes half of the bytes and answers how many these were. It reports false, and changes
// nothing, if the call writes less than two bytes, or not from the program's memory.
func (c *Call) Shorten() bool {
	if !strings.Contains(c.Name, "write") {
		return false
	}
	remote := []unix.RemoteIovec{{Base: uintptr(c.args[1]), Len: int(c.args[2])}}
	if c.Name != "write" && c.Name != "pwrite64" {
		vector := make([]byte, 16*min(c.args[2], 1024))
		n, err := c.read(vector, uintptr(c.args[1]))
		if err != nil || n < len(vector) || n == 0 {
			return false
		}
		remote = unsafe.Slice((*unix.RemoteIovec)(unsafe.Pointer(unsafe.SliceData(vector))), n/16)
	}
	total := 0
	for i, r := range remote {
		if total += r.Len; total > 1<<20 {
			remote[i].Len -= total - 1<<20
			remote, total = remote[:i+1], 1<<20
			break
		}
	}
	if total < 2 {
		return false
	}
	data := make([]byte, total/2)
	local := []unix.Iovec{{Base: &data[0]}}
	local[0].SetLen(len(data))
	if n, err := unix.ProcessVMReadv(c.task, local, remote, 0); err != nil || n != len(data) {
		return false
	}
	fd, err := c.descriptor()
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if !c.waits() {
		return false
	}
	n := 0
	switch {
	case c.Name == "pwrite64" || c.Name == "pwritev":
		n, err = unix.Pwrite(fd, data, int64(c.args[3]))
	case c.Name == "pwritev2":
		n, err = unix.Pwritev2(fd, [][]byte{data}, int64(c.args[3]), int(c.args[5]))
	default:
		n, err = unix.Write(fd, data)
	}
	if err != nil {
		var e unix.Errno
		errors.As(err, &e)
		c.Fail(e)
		return true
	}
	c.answer.val, c.answer.flags = int64(n), 0
	return true
}

// Thread is the number of the thread that made the call.
func (c *Call) Thread() int { return c.task }

// Link is the path of the call's descriptor, in the directory of its process.
func (c *Call) Link() string { return fmt.Sprintf("/proc/%d/fd/%d", c.task, int32(c.args[c.at.file])) }

// Arg is an argument of the call.
func (c *Call) Arg(n int) uint64 { return c.args[n] }

// Descriptor says what the kernel knows of the descriptor that the call names: where it is in its file, and by which flags it was
// opened. They are not the call's own flags.
func (c *Call) Descriptor() (position int64, flags int, err error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", c.task, int32(c.args[c.at.file])))
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(string(info), "pos:\t%d\nflags:\t%o", &position, &flags); err != nil {
		return 0, 0, fmt.Errorf("fdinfo: %w", err)
	}
	return position, flags, nil
}

// Durable reports whether the call writes bytes that are on the disk when it returns, by the flags of the descriptor or its own.
func (c *Call) Durable(flags int) bool {
	if c.Name == "pwritev2" && int(c.args[5])&(unix.RWF_DSYNC|unix.RWF_SYNC) != 0 {
		return true
	}
	return flags&unix.O_DSYNC != 0 // it is a part of O_SYNC
}

// Range says which bytes of its file the call writes, if the descriptor is at a position and the file has a size. It is not ok
// where only the kernel knows.
func (c *Call) Range(position int64, flags int, size int64) (from, to int64, ok bool) {
	length := int64(c.args[2])
	if strings.Contains(c.Name, "writev") {
		vector := make([]byte, 16*min(c.args[2], 1024))
		if n, err := c.read(vector, uintptr(c.args[1])); len(vector) == 0 || err != nil || n < len(vector) {
			return 0, 0, false
		}
		length = 0
		for _, v := range unsafe.Slice((*unix.RemoteIovec)(unsafe.Pointer(unsafe.SliceData(vector))), len(vector)/16) {
			length += int64(v.Len)
		}
	}
	from = position
	switch c.Name {
	case "write", "writev":
	case "pwrite64", "pwritev":
		from = int64(c.args[3])
	case "pwritev2":
		if from = int64(c.args[3]); from < 0 {
			from = position
		}
		if c.args[5]&unix.RWF_APPEND != 0 {
			from = size
		}
	default:
		return 0, 0, false
	}
	if flags&unix.O_APPEND != 0 {
		from = size
		return from, math.MaxInt64, true // behind what others append meanwhile
	}
	return from, from + length, length >= 0
}

// Opens reports the flags of a call that opens a file, as far as they are known.
func (c *Call) Opens() int {
	switch c.Name {
	case "open":
		return int(c.args[1])
	case "openat":
		return int(c.args[2])
	case "creat":
		return unix.O_CREAT | unix.O_TRUNC
	}
	return unix.O_CREAT | unix.O_TRUNC // openat2 has them in memory
}

// Old is the path that a renaming call takes the name from.
func (c *Call) Old() string {
	if c.Name == "rename" {
		return c.pathOf(none, 0)
	}
	return c.pathOf(0, 1)
}

// File opens the file of a descriptor anew.
func (c *Call) File(flags int) (*os.File, error) {
	return os.OpenFile(c.Link(), flags, 0)
}

// descriptor returns the descriptor that the call writes to, as one of this process.
func (c *Call) descriptor() (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.task))
	if err != nil {
		return 0, err
	}
	_, after, _ := bytes.Cut(status, []byte("\nTgid:\t"))
	number, _, _ := bytes.Cut(after, []byte("\n"))
	process, err := strconv.Atoi(string(number))
	if err != nil {
		return 0, err
	}
	pidfd, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, int(c.args[0]), 0)
}

// waits reports whether the call still waits: the task may have been killed, and its number be another's.
func (c *Call) waits() bool {
	return c.s.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&c.answer.id)) == 0
}

func (c *Call) read(p []byte, at uintptr) (int, error) {
	local := []unix.Iovec{{Base: &p[0]}}
	local[0].SetLen(len(p))
	n, err := unix.ProcessVMReadv(c.task, local, []unix.RemoteIovec{{Base: at, Len: len(p)}}, 0)
	return max(n, 0), err // -1 of a program that was killed meanwhile
}

// A link is /proc/TASK/fd/N; of AT_FDCWD it is /proc/TASK/cwd.
type link struct{ task, fd int32 }

// maxLinks bounds the descriptors that a Supervisor keeps.
const maxLinks = 128

// A Supervisor decides what becomes of the calls of a program and of all that it starts.
type Supervisor struct {
	dir      string
	at       func(*Call)
	calls    map[int32]operand
	listener int
	thread   atomic.Int32 // that serves
	stopping atomic.Bool
	notice   notice       // that the kernel fills next; it refuses to if a byte is not zero
	call     Call         // made of notice
	last     string       // path of a descriptor
	links    map[link]int // open: they name at any time what the descriptor is then
	counts   map[Kind]int
	serial   int
	err      error
	done     chan struct{}
	delayed  sync.WaitGroup
	buf      [4096]byte
	path     [4096]byte
}

// launch is in the environment of a process that makes a filter for itself, hands its listener
// over and becomes the program. A thread of this process can't: the runtime writes to wake its own
// poller, and would wait for a supervisor that may be stopped meanwhile.
const launch = "HOLDFAST_SYSCALLFAULT_LAUNCH"

// launches says that this program calls Launch.
var launches bool

// Launch makes this process the program that [Start] starts, if it was started for that. Else it
// returns. A program calls it before all else in main, or in the TestMain of its tests: Start starts
// its own program once more, as an intermediate process.
func Launch() {
	launches = true
	if text, ok := os.LookupEnv(keeping); ok {
		_ = os.Unsetenv(keeping)
		keep(text)
	}
	text, ok := os.LookupEnv(launch)
	if !ok {
		return
	}
	runtime.LockOSThread()
	err := os.Unsetenv(launch)
	words := strings.SplitN(text, " ", 3) // the socket, the kinds, the program
	socket, numberErr := strconv.Atoi(words[0])
	if err = errors.Join(err, numberErr); err == nil {
		var kinds []Kind
		for _, k := range strings.Split(words[1], ",") {
			kinds = append(kinds, Kind(k))
		}
		unix.CloseOnExec(socket)
		var listener int
		if listener, err = install(kinds); err == nil {
			if err = unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err == nil {
				err = syscall.Exec(words[2], os.Args, os.Environ())
			}
		}
	}
	fmt.Fprintln(os.Stderr, "no supervisor for system calls (seccomp user notification):", err)
	os.Exit(127)
}

// patience is how long a program may take to start.
const patience = time.Minute

// Start starts a program. Its calls of some kinds to files below a directory, which is an absolute
// path without links, are given to at, one at a time. [Supervisor.Stop] must be called in the end.
// The program is started by this one, which takes its place.
func Start(cmd *exec.Cmd, dir string, kinds []Kind, at func(*Call)) (*Supervisor, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	if !launches { // or the tests that it starts would start it again
		return nil, errors.New("no supervisor for system calls: this program does not call syscallfault.Launch first")
	}
	if err := unix.Access(cmd.Path, unix.X_OK); err != nil {
		return nil, fmt.Errorf("%s: %w", cmd.Path, err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(pair[0])
	end := os.NewFile(uintptr(pair[1]), "listener")
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	cmd.Env = append(cmd.Environ(), fmt.Sprintf("%s=%d %s %s", launch, 3+len(cmd.ExtraFiles), strings.Join(names, ","), cmd.Path))
	cmd.ExtraFiles = append(cmd.ExtraFiles, end)
	cmd.Path = "/proc/self/exe"
	err = cmd.Start()
	if err = errors.Join(err, end.Close()); err != nil {
		return nil, err
	}
	var rights [64]byte
	var n int
	err = unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)})
	for again := err == nil; again; again = err == unix.EINTR {
		_, n, _, _, err = unix.Recvmsg(pair[0], make([]byte, 1), rights[:], unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		_ = cmd.Process.Kill() // it has not become the program
	}
	s := &Supervisor{dir: dir, at: at, calls: callsByNumber(), links: map[link]int{}, counts: map[Kind]int{}, done: make(chan struct{})}
	if messages, e := unix.ParseSocketControlMessage(rights[:n]); err == nil && e == nil && len(messages) == 1 {
		if fds, e := unix.ParseUnixRights(&messages[0]); e == nil && len(fds) == 1 {
			s.listener = fds[0]
		}
	}
	if s.listener == 0 {
		return nil, fmt.Errorf("no supervisor for system calls (seccomp user notification): %w", errors.Join(err, cmd.Wait()))
	}
	go s.serve()
	return s, nil
}

// Stop ends the supervision, after the program has ended. Calls of processes it left running fail
// from then on. It returns how many calls of each kind there were.
func (s *Supervisor) Stop() (map[Kind]int, error) {
	// RECV must not wait again. It refuses a notice that is not zero. The signal ends a wait: the kernel
	// returns EINTR (older kernels), or starts the call anew, which is refused then.
	s.stopping.Store(true)
	atomic.StoreUint32(&s.notice.flags, 1)
	_ = unix.Tgkill(os.Getpid(), int(s.thread.Load()), unix.SIGURG) // by which the runtime preempts; it may have ended
	<-s.done
	s.delayed.Wait()
	if s.listener >= 0 {
		unix.Close(s.listener)
	}
	for _, fd := range s.links {
		unix.Close(fd)
	}
	return s.counts, s.err
}

// install makes a filter for this thread, and returns its listener.
func install(kinds []Kind) (listener int, err error) {
	calls := callsByNumber()
	numbers := slices.DeleteFunc(slices.Sorted(maps.Keys(calls)), func(n int32) bool { return !slices.Contains(kinds, calls[n].kind) })
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4}, // of struct seccomp_data: the architecture
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number
	}
	for i, n := range numbers {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(n), Jt: uint8(len(numbers) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	// Without the second flag (Linux 5.19) a signal makes a call be noticed twice.
	var fd uintptr
	e := unix.EINVAL
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0} {
		if e == unix.EINVAL {
			fd, _, e = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|flags, uintptr(unsafe.Pointer(&program)))
		}
	}
	if e != 0 {
		return 0, e
	}
	return int(fd), nil
}

// ioctl asks the listener something. A lock of the kernel may make it wait.
func (s *Supervisor) ioctl(request uintptr, p unsafe.Pointer) unix.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), request, uintptr(p))
	return e
}

// turn is the calls after which the runtime may schedule. Its monitor would preempt the running
// thread for 10 ms, and then wake up each 20 µs: 0.5 µs a call.
const turn = 1000

// serve answers calls until Stop, or until all processes have ended. A poll(2) before each RECV would
// be a third of the time of a call.
func (s *Supervisor) serve() {
	defer close(s.done)
	// The one that waits and the one that answers share a CPU: no wake-up goes to another one.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	defer runtime.UnlockOSThread()
	n := &s.notice
	for i := 0; ; i++ {
		if i%turn == 0 {
			runtime.UnlockOSThread() // a locked one would wake up another thread to be scheduled
			runtime.Gosched()
			runtime.LockOSThread()
			s.thread.Store(int32(unix.Gettid()))
		}
		n.id, n.pid, n.data = 0, 0, call{}
		atomic.StoreUint32(&n.flags, 0)
		if s.stopping.Load() { // looked at last: Stop sets the flags after it
			return
		}
		e := s.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
		switch {
		case e == 0:
			s.decide(n)
		case e == unix.EINTR || s.stopping.Load():
		case e == unix.ENOENT: // the task died, or all have: Linux 6.11 does not wait then
			poll := []unix.PollFd{{Fd: int32(s.listener)}}
			if _, err := unix.Poll(poll, 0); err == nil && poll[0].Revents&unix.POLLHUP != 0 {
				return
			}
		default:
			s.err = fmt.Errorf("SECCOMP_IOCTL_NOTIF_RECV: %w", e)
			unix.Close(s.listener) // calls fail from now on, and none waits
			s.listener = -1
			return
		}
	}
}

// decide answers one call.
func (s *Supervisor) decide(n *notice) {
	at := s.calls[n.data.number]
	c := &s.call
	*c = Call{Kind: at.kind, Name: at.name, s: s, task: int(n.pid), at: at, args: n.data.args, answer: response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}}
	if c.locate() {
		s.counts[c.Kind]++
		s.serial++
		c.Number, c.Serial = s.counts[c.Kind], s.serial
		s.at(c)
	}
	if c.Delay == 0 {
		// It does not wait. ENOENT: the task was killed.
		_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, uintptr(s.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&c.answer)))
		return
	}
	answer, later := c.answer, time.After(c.Delay)
	s.delayed.Add(1)
	go func() {
		defer s.delayed.Done()
		select {
		case <-later:
			s.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
		case <-s.done:
		}
	}()
}

// follow returns what a link names, until the next call of it. It asks an open link by an empty
// name: the kernel then looks up no path.
func (s *Supervisor) follow(l link) []byte {
	for {
		at, known := s.links[l]
		if !known {
			name := "cwd"
			if l.fd != unix.AT_FDCWD {
				name = "fd/" + strconv.Itoa(int(l.fd))
			}
			var err error
			if at, err = unix.Open(fmt.Sprintf("/proc/%d/%s", l.task, name), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
				return nil
			}
			for other := range s.links {
				if len(s.links) < maxLinks {
					break
				}
				s.close(other)
			}
			s.links[l] = at
		}
		var empty byte
		n, _, e := unix.RawSyscall6(unix.SYS_READLINKAT, uintptr(at), uintptr(unsafe.Pointer(&empty)),
			uintptr(unsafe.Pointer(&s.buf)), uintptr(len(s.buf)), 0, 0)
		if e == 0 {
			return s.buf[:n]
		}
		s.close(l)
		if !known {
			return nil
		}
		// The thread had ended, and its number is another's now. Or the descriptor was closed.
	}
}

func (s *Supervisor) close(l link) {
	unix.Close(s.links[l])
	delete(s.links, l)
}

// locate finds the path of a call's file, and reports whether it is below the directory.
func (c *Call) locate() bool {
	if c.at.file != none {
		fd := int32(c.args[c.at.file])
		if fd < 0 {
			return false
		}
		path := bytes.TrimSuffix(c.s.follow(link{int32(c.task), fd}), []byte(" (deleted)"))
		if string(path) != c.s.last {
			c.s.last = string(path)
		}
		c.Path = c.s.last
	} else if c.at.path == none {
		if c.Name == "msync" {
			return c.mapped()
		}
		c.Path = c.s.dir
	} else if c.Path = c.pathOf(c.at.dir, c.at.path); c.Path == "" {
		return false
	}
	return c.s.below(c.Path)
}

// pathOf returns the path that an argument names, below a directory that another one may name, or "".
func (c *Call) pathOf(dir, at int8) string {
	// A path ends anywhere, and the page behind it may be unmapped.
	path := &c.s.path
	address := uintptr(c.args[at])
	n := min(len(path), 4096-int(address&4095))
	n, err := c.read(path[:n], address)
	if end := bytes.IndexByte(path[:n], 0); err == nil && end < 0 {
		more, _ := c.read(path[n:], address+uintptr(n))
		n += more
	}
	end := bytes.IndexByte(path[:n], 0)
	if end < 0 {
		return ""
	}
	found := string(path[:end])
	if !filepath.IsAbs(found) {
		from := link{int32(c.task), unix.AT_FDCWD}
		if dir != none {
			from.fd = int32(c.args[dir])
		}
		found = filepath.Join(string(c.s.follow(from)), found)
	}
	return found
}

// mapped finds the files of msync. It reports whether one of them is below the directory.
func (c *Call) mapped() bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.task))
	if err != nil {
		return false
	}
	first, end := c.args[0], c.args[0]+c.args[1]
	for line := range strings.Lines(string(maps)) {
		var from, to, offset, inode uint64
		var rights, device string
		n, _ := fmt.Sscanf(line, "%x-%x %s %x %s %d", &from, &to, &rights, &offset, &device, &inode)
		if n < 6 || from >= end || first >= to || inode == 0 {
			continue
		}
		if slash := strings.IndexByte(line, '/'); slash < 0 || !c.s.below(strings.TrimSuffix(line[slash:], "\n")) {
			continue
		} else if c.Path == "" {
			c.Path = strings.TrimSuffix(strings.TrimSuffix(line[slash:], "\n"), " (deleted)")
		}
		least := max(from, first)
		c.Mapped = append(c.Mapped, Part{Inode: inode, From: int64(offset + least - from), To: int64(offset + min(to, end) - from)})
	}
	return c.Mapped != nil
}

// below reports whether a path is below the directory, or is it.
func (s *Supervisor) below(path string) bool {
	rest, below := strings.CutPrefix(path, s.dir)
	return below && (rest == "" || rest[0] == '/')
}
