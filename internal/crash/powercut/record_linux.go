package powercut

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/volume"
)

const (
	pageSize  = 4096
	leastSize = 64 << 20 // bytes of a disk, so that the files of each workload have room
	// A recording has at least this number of notes, and ends after this size: more of the same
	// shows nothing new.
	leastNotes = 90
	mostNotes  = 12_000
	mostBytes  = 24 << 20
)

// patience is the default of an order, and at least what its room has. A second of work may take half a minute on a
// busy machine, and a few times that in another kernel there.
var patience = 60 * time.Second

// programOf returns the program that a cell is about, or nil.
func (o *order) programOf(c *cell) *crash.Program {
	if c.Workload.Control != "" {
		return nil
	}
	return o.Program
}

// record runs the workload of a cell on a new file system, and returns the log of its disk.
func (r *room) record(c *cell, long time.Duration) (l *crash.Log, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience+long)
	defer cancel()
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(inTime(ctx, err), os.RemoveAll(c.dir)) }()
	l = &crash.Log{Workload: c.Workload.Name, Policy: c.Policy.String(), Seed: c.seed, FS: c.kind.Name, Size: c.size(), Program: r.order.programOf(c)}
	l.Sector, l.Whole = written(c.kind)
	image, err := r.makeImage(ctx, c, l.Size)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	c.step("copy of the new file system")
	if err := addImage(l, image); err != nil {
		return nil, err
	}
	how := countsNotes
	if l.Program != nil {
		how = countsPrinted
	}
	return l, r.served(ctx, c, image, how, func(top string, d *disk) error {
		c.step("first sync")
		dir := filepath.Join(top, workName)
		if err := os.Mkdir(dir, 0o777); err != nil {
			return err
		}
		if err := syncAll(top); err != nil {
			return err
		}
		start, err := d.entries()
		if err != nil {
			return err
		}
		lives := r.lives
		if l.Program != nil {
			lives = r.livesOfProgram
		}
		behind, err := lives(ctx, c, dir, d, long)
		if err != nil {
			return err
		}
		all, err := d.entries()
		if err != nil {
			return err
		}
		notes, upTo := d.notes.All(), func(counted uint64) int { return int(counted) }
		if l.Program != nil {
			if notes, upTo, err = printedNotes(c.in("printed")); err != nil {
				return err
			}
		}
		addEntries(l, all, len(start), notes, upTo, c.liar == noFlush, behind)
		return nil
	})
}

// A restart is where a process was killed and another one went on with its files, in a log that is being recorded.
type restart struct {
	at    int    // before this entry
	noted uint64 // so much had been noted, or printed
	left  *crash.Survivors
}

// restartOf returns the restart of a process that was killed just now.
func (d *disk) restartOf(noted uint64, left *crash.Survivors) (*restart, error) {
	all, err := d.entries()
	return &restart{len(all), noted, left}, err
}

// killedAfter returns how long the first process of a cell writes until it is killed and another one goes on with its files;
// 0 is that none does. Each order of magnitude comes as often. A liar needs no second life to be caught.
func (c *cell) killedAfter(long time.Duration) time.Duration {
	random := rand.New(rand.NewPCG(c.seed, 9))
	w := c.Workload
	if w.Outlived || c.liar != "" || w.IsLiar() || random.IntN(2) == 0 {
		return 0
	}
	return time.Duration(float64(time.Millisecond) * math.Pow(max(1, float64(long)/float64(time.Millisecond)), random.Float64()))
}

// refusesData reports whether a file system goes on where its disk refuses a write of a file's bytes, and only such a write has a
// record in it. btrfs keeps the bytes of small files in its trees, and others in a journal.
func refusesData(k volume.Kind) bool {
	return slices.Contains([]string{"ext4", "ext4-writeback", "ext3", "xfs"}, k.Name)
}

// refused returns the number of the write of a record that the disk of a cell refuses, in half of the cells without a kill. Each order
// of magnitude comes as often.
func (c *cell) refused() int {
	random := rand.New(rand.NewPCG(c.seed, 10))
	w, most := c.Workload, 64.0
	switch {
	case !refusesData(c.kind) || c.liar != "" || w.Outlived:
		return 0
	case w.Failing: // it must meet it
		most = 3 // however few records a slow guest writes
	case w.IsLiar() || c.killedAfter(time.Second) > 0 || random.IntN(2) == 0:
		return 0
	}
	return int(math.Pow(most, random.Float64()))
}

// refusesRecord chooses the nth write in which a record begins, once. Records are in no journal and in no metadata.
func refusesRecord(nth int) func(crash.Entry) bool {
	seen := 0
	return func(e crash.Entry) bool {
		if seen == nth || !crash.HasRecord(e.Data) {
			return false
		}
		seen++
		return seen == nth
	}
}

// lives runs the workload of a cell until the log has enough of it. In part of the cells its process is killed before, or ends since
// the disk has refused a write. Then another one goes on.
func (r *room) lives(ctx context.Context, c *cell, dir string, d *disk, long time.Duration) (behind *restart, err error) {
	after, number, why := c.killedAfter(long), 0, "killed"
	if after > 0 || c.refuses > 0 {
		killed, err := r.work(ctx, c, dir, d, cmp.Or(after, long), c.seed, number, after > 0)
		if err != nil && c.refuses > 0 && ctx.Err() == nil && d.hasRefused() {
			killed, why, err = true, "behind a sync that had failed", nil
		}
		if err != nil || !killed { // it had no more to do
			return nil, err
		}
		c.step("survey between two lives")
		if c.refuses > 0 {
			err = dropPages(dir)
		}
		left, lookErr := c.Workload.Look(dir, c.Workload.Targets(c.Policy))
		if err = errors.Join(err, lookErr); c.refuses > 0 && stops(err) {
			return nil, nil
		}
		if err != nil {
			return nil, &crash.RunError{Err: fmt.Errorf("what is left can't be read, %s: %w", why, err)}
		}
		if behind, err = d.restartOf(d.notes.Begun(), left); err != nil {
			return nil, err
		}
		long, number = max(long-after, long/4), 1
	}
	_, err = r.work(ctx, c, dir, d, long, c.seed+uint64(number), number, false)
	if behind != nil && c.refuses > 0 && stops(err) {
		return behind, nil
	}
	// The disk's process, the end of the time and a full disk are not the workload's.
	if err != nil && behind != nil && ctx.Err() == nil && unix.Statfs(dir, &unix.Statfs_t{}) == nil && !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		err = &crash.RunError{Err: fmt.Errorf("%s and started again, it failed: %w", why, err)}
	}
	return behind, err
}

// hasRefused reports whether the disk has refused a write of a record.
func (d *disk) hasRefused() bool {
	all, err := d.entries()
	return err == nil && slices.ContainsFunc(all, func(e logged) bool { return e.Op == crash.Lose })
}

// stops reports whether an error is of a file system that has stopped, or of the first sync behind a write that was refused before
// anybody synced: the kernel says so to whom asks next.
func stops(err error) bool {
	return err != nil && (strings.Contains(err.Error(), unix.EIO.Error()) || strings.Contains(err.Error(), unix.EROFS.Error()))
}

// dropPages writes all files to the disk and drops them from the page cache, as the kernel may at any time. What the disk has refused
// is read from the cache before. On ext4 (Linux 6.18) it may not even be there when it was written again and synced: the extent of
// a page whose first write has failed stays unwritten until the page is read again. Few programs ask for that: see sys.Disk.DropRefused.
func dropPages(dir string) error {
	_ = syncAll(dir) // of the refused write, maybe
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
	})
}

// inTime says of a failure that the time was over, which ends the processes.
func inTime(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the run was not over in its time: %w: %w", ctx.Err(), err)
	}
	return err
}

// written says how many bytes a disk never tears, and which are the superblock, if that is more. A file system
// writes its superblock in place, and relies on it. A checksum covers the 1,024 bytes of ext4, from 1,024 on
// (Documentation/filesystems/ext4/super.rst), and the 4 KiB of btrfs. No mount takes it without.
func written(k volume.Kind) (sector int64, whole [2]int64) {
	switch k.Type {
	case "ext2", "ext3", "ext4":
		return 512, [2]int64{1024, 2048}
	case "btrfs":
		return 512, [2]int64{64 << 10, 68 << 10}
	case "f2fs":
		return 4096, whole // few of its blocks have a checksum
	}
	return 512, whole
}

// addEntries adds what reached the disk, and each note before the first entry that counted it. The
// entries from start on came after the file system was made.
func addEntries(l *crash.Log, all []logged, start int, notes []crash.Note, upTo func(counted uint64) int, ignores bool, behind *restart) {
	noted := 0
	note := func(upTo int) {
		for ; noted < upTo; noted++ {
			if n := notes[noted]; n.Kind != 0 {
				l.Entries = append(l.Entries, crash.Entry{Op: crash.Noted, At: n.At, Note: &n})
			}
		}
	}
	begin := func() {
		if l.FS == Model { // earlier files are on the disk
			l.Entries = append(l.Entries, crash.Entry{Op: crash.Flush, UpTo: len(l.Entries)})
		}
		l.Start = len(l.Entries)
	}
	restarted := func() {
		note(min(upTo(behind.noted), len(notes)))
		l.Entries = append(l.Entries, crash.Entry{Op: crash.Killed, Left: behind.left})
	}
	flushes := 0
	for i, e := range all {
		if i == start {
			begin()
		}
		if behind != nil && i == behind.at {
			restarted()
		}
		note(min(upTo(e.notes), len(notes)))
		add := e.Entry
		switch e.Op {
		case crash.Write:
			if l.FS != Model {
				add.File = device
			}
		case crash.Flush:
			flushes++
			if ignores && i >= start && (flushes-1)%keepsFlush != 0 {
				continue
			}
			add.UpTo = len(l.Entries)
		}
		l.Entries = append(l.Entries, add)
	}
	if len(all) == start {
		begin()
	}
	if behind != nil && len(all) == behind.at {
		restarted()
	}
	note(len(notes))
}

// device is the number of the disk in a log, and workName the directory on it.
const (
	device   = 1
	workName = "d"
)

// size is how many bytes the disk of a cell has.
func (c *cell) size() int64 {
	switch c.kind.Type {
	case "btrfs", "f2fs", "nilfs2":
		return 512 << 20 // they give room away in large pieces, and keep what no commit or cleaner has freed
	}
	return max(c.kind.Least, leastSize)
}

// addImage adds what mkfs has made, as writes that are on the disk.
func addImage(l *crash.Log, image *os.File) error {
	zero := make([]byte, pageSize)
	for at := int64(0); ; {
		from, err := unix.Seek(int(image.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break
		}
		to, holeErr := unix.Seek(int(image.Fd()), from, unix.SEEK_HOLE)
		if err := errors.Join(err, holeErr); err != nil {
			return err
		}
		data := make([]byte, to-from)
		if _, err := image.ReadAt(data, from); err != nil && err != io.EOF {
			return err
		}
		for ; len(data) > 0; from += pageSize {
			page := data[:min(pageSize, len(data))]
			if data = data[len(page):]; !bytes.Equal(page, zero[:len(page)]) {
				l.Entries = append(l.Entries, crash.Entry{Op: crash.Write, File: device, Offset: from, Data: bytes.Clone(page)})
			}
		}
		at = to
	}
	l.Entries = append(l.Entries, crash.Entry{Op: crash.Flush, UpTo: len(l.Entries)})
	return nil
}

// work runs the workload in a process of its own, until the log has enough of it, or until it is killed, which may be at any moment.
func (r *room) work(ctx context.Context, c *cell, dir string, d *disk, long time.Duration, seed uint64, number int, kill bool) (killed bool, err error) {
	cmd := r.child(ctx, c.Workload.Name, c.Policy.String(), dir, strconv.FormatUint(seed, 10), strconv.Itoa(number))
	d.notes.Give(cmd)
	d.notes.End(math.MaxInt32) // a life before may have been asked to end
	before := d.notes.Begun()
	most, end := int64(mostNotes), func() { d.notes.End(0) }
	if kill {
		most, end = mostNotes/2, func() {
			killed = true
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	err = r.until(c, cmd, d, long, func() (int64, bool) {
		n := d.notes.Begun()
		return int64(n - before), kill || n-before >= leastNotes
	}, most, end)
	if killed { // unless it ended by itself just before
		killed = cmd.ProcessState != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if killed && ctx.Err() == nil {
			err = nil
		}
	}
	return killed, err
}

// until runs a process that writes until the log has enough of it, and then calls end. It asks
// count how much the process has noted, and whether that is enough.
func (r *room) until(c *cell, cmd *exec.Cmd, d *disk, long time.Duration, count func() (noted int64, enough bool), most int64, end func()) error {
	var said tail
	if cmd.Stdout == nil {
		cmd.Stdout = &said
	}
	cmd.Stderr = &said
	c.step("start of the program")
	runtime.LockOSThread() // a capability is a thread's, and its children inherit it: the program needs none
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	err := cmd.Start()
	runtime.UnlockOSThread()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	began, last := time.Time{}, int64(0)
	for tick := time.Tick(time.Millisecond); ; {
		select {
		case err := <-ended:
			if err != nil {
				broken := crash.Panicked(said.String())
				if err = fmt.Errorf("the program: %w: %s", err, strings.TrimSpace(said.String())); broken != nil && r.order.Program == nil {
					return broken
				}
			}
			return err
		case err := <-d.ended:
			d.ended <- err
			return errors.Join(err, errors.New("the disk's process ended too early"))
		case <-tick:
		}
		info, err := os.Stat(d.log)
		noted, enough := count()
		if noted > last {
			last = noted
			c.step("the program's writes")
		}
		switch {
		case err != nil:
			return err
		case began.IsZero() && noted > 0:
			began = time.Now()
		case !began.IsZero() && (time.Since(began) > long && enough || noted > most || info.Size() > mostBytes):
			end()
		}
	}
}

// leastAcks is how many lines a program prints before it may be killed, and printedBytes when it
// has printed enough. A program may sync before each line, and take its time.
const (
	leastAcks    = 20
	printedBytes = 1 << 20
)

// livesOfProgram runs somebody's program, kills it, and lets it go on with its files until the log has enough of it.
func (r *room) livesOfProgram(ctx context.Context, c *cell, dir string, d *disk, long time.Duration) (behind *restart, err error) {
	after := c.killedAfter(long)
	if after == 0 {
		_, err := r.workOfProgram(ctx, c, dir, d, long, 0)
		return nil, err
	}
	stopped, err := r.workOfProgram(ctx, c, dir, d, after, 1)
	for end := time.Now().Add(dies); stopped && worksIn(dir) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if err != nil || !stopped || worksIn(dir) { // it had no more to do, or a part of it has left its group, and two lives must not write at a time
		return nil, err
	}
	printed, err := os.OpenFile(c.in("printed"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	defer printed.Close()
	if _, err := printed.WriteString("\n" + crash.NewLife + "\n"); err != nil { // the kill may have torn its last line
		return nil, err
	}
	info, err := printed.Stat()
	if err != nil {
		return nil, err
	}
	if behind, err = d.restartOf(uint64(info.Size()), nil); err != nil {
		return nil, err
	}
	// A program that can't go on behind a kill has an end of its log there: a second run on a state judges that.
	short, cancel := context.WithTimeout(ctx, patience/3)
	defer cancel()
	if _, err := r.workOfProgram(short, c, dir, d, max(long-after, long/4), 0); err != nil && ctx.Err() == nil && unix.Statfs(dir, &unix.Statfs_t{}) == nil {
		return behind, nil
	}
	return behind, ctx.Err()
}

// dies is how long a killed process may take to end: a sync that it has begun goes on.
const dies = 2 * time.Second

// worksIn reports whether a process works in a directory.
func worksIn(dir string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	return slices.ContainsFunc(all, func(name string) bool {
		at, err := os.Readlink(name) // it may have ended
		return err == nil && at == dir
	})
}

// workOfProgram runs somebody's program and kills it when the log has enough of it, or has this number of its lines. Its unsynced
// bytes are then not in the log, or reached the disk by chance.
func (r *room) workOfProgram(ctx context.Context, c *cell, dir string, d *disk, long time.Duration, enough int64) (stopped bool, err error) {
	// A file takes all that a pipe would make the program wait for. At each write and flush the disk's
	// process sees how much of it is there.
	printed, err := os.OpenFile(c.in("printed"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return false, err
	}
	defer printed.Close()
	if enough == 0 {
		enough = leastAcks
	}
	before, err := printed.Stat()
	if err != nil {
		return false, err
	}
	cmd := shell(ctx, dir, r.order.Program.Command)
	cmd.Stdout = printed
	began := time.Now()
	err = r.until(c, cmd, d, long, func() (int64, bool) {
		info, err := printed.Stat()
		if err != nil {
			return 0, false
		}
		size := info.Size() - before.Size()
		return size, size >= enough*int64(len("ack 1\n")) || time.Since(began) > patience/3
	}, printedBytes, func() {
		stopped = true
		_ = cmd.Cancel()
	})
	switch notes, _, readErr := printedNotes(c.in("printed")); {
	case readErr != nil:
		return false, readErr
	case err != nil && !stopped && ctx.Err() == nil:
		return false, err
	case len(notes) == 0:
		return false, errors.New("the program acknowledged nothing")
	}
	// A file that can't be read now is no proof against a file system.
	c.step("--read")
	_, err = r.order.Program.Survey(ctx, dir)
	return stopped, err
}

// shell runs a command in a directory. Its end ends all that it has started.
func shell(ctx context.Context, dir, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = patience / 3
	return cmd
}

// printedNotes are the acknowledgements of a program, and the number of them in its first bytes.
func printedNotes(file string) (notes []crash.Note, upTo func(counted uint64) int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	var ends []uint64
	at := uint64(0)
	for line := range bytes.Lines(text) {
		at += uint64(len(line))
		for _, n := range crash.Acknowledged(line, crash.Durable) {
			notes, ends = append(notes, n), append(ends, at)
		}
	}
	return notes, func(counted uint64) int {
		return sort.Search(len(ends), func(i int) bool { return ends[i] > counted })
	}, nil
}
