package records

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/VictoriaMetrics/VictoriaMetrics/lib/filestream"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

const (
	kib, mib = 1 << 10, 1 << 20
	block    = 256 * kib // of the limits
)

const (
	lockedNote = ", with a sync.Mutex around it when goroutines share it"
	appendNote = "In the clock: from the first record until the sink is flushed and closed. Not in it: opening. Nothing is synced. Limits are of one goroutine that makes as many records. Left out: etcd's wal and pebble's LogWriter give each record a header and a checksum, so they do other work and write another file."
)

// appends are small and large records by one and many goroutines.
func appends() (all []*group) {
	for _, size := range []int{40, 200, 4 * kib, mib} {
		for _, n := range []int{1, 2, 8, 64, 512, 4096} {
			if n*size > 1<<30 { // each goroutine has a record of its own
				continue
			}
			w := work{goroutines: n, each: max(1, min(4_000_000, 200_000_000/size)/n), size: size, policy: "buffer=256KiB,sync=never", closeTimed: true}
			part := w
			part.each = max(1, w.each/8)
			arms := append(bufios(w),
				&arm{Name: "zap", Note: "zapcore.BufferedWriteSyncer of 256 KiB, which flushes every 30 s; it syncs in Stop, which is made to do nothing here since no arm syncs", Do: how{open: openZap}},
				&arm{Name: "filestream", Note: "VictoriaMetrics' Writer, whose memory of 128 KiB is fixed" + lockedNote, Do: how{open: openFilestream}},
				&arm{Name: "os.File", Note: "one write(2) a record; an eighth of the records", Do: how{work: part, open: openFile}},
				&arm{Name: "lumberjack", Note: "a rotating log that never has to rotate: its MaxSize is out of reach; an eighth of the records", Do: how{work: part, open: openLumberjack}})
			g := newGroup(fmt.Sprintf("append/size=%v/goroutines=%d", holdfast.Size(size), n), fmt.Sprintf("records of %v until all are in the page cache", holdfast.Size(size)), w, append(arms, limits(w)...))
			g.Best, g.Notes = "bufio", []string{appendNote}
			g.Job = extra(size > 40 && n == 4096 || size > 200 && n != 1 && n != 8 && n != 64)
			all = append(all, g)
		}
	}
	return all
}

// bufios are a Writer and its usual substitutes, with buffers of each size. A large one is
// not always better: behind a mutex that many want, 64 KiB that stay in a CPU's cache are.
func bufios(w work) []*arm {
	with := func(buffer string) work {
		other := w
		other.policy = "buffer=" + buffer + ",sync=never"
		return other
	}
	arms := []*arm{
		{Name: "holdfast", Note: "a Writer, " + w.policy, Do: how{open: openHoldfast}},
		{Name: "holdfast 64KiB", Note: "a Writer, " + with("64KiB").policy, Do: how{work: with("64KiB"), open: openHoldfast}},
	}
	for _, buffer := range []string{"4KiB", "64KiB", "256KiB"} {
		arms = append(arms, &arm{Name: "bufio " + buffer, Note: "a bufio.Writer of " + buffer + lockedNote, Do: how{work: with(buffer), open: openBufio}})
	}
	return arms
}

// unbuffered are records that each go to the kernel at once.
func unbuffered() (all []*group) {
	for _, size := range []int{40, 200, 4 * kib} {
		for _, n := range []int{1, 8} {
			w := work{goroutines: n, each: min(500_000, 200_000_000/size) / n, size: size, policy: "buffer=0,sync=never", closeTimed: true}
			all = append(all, newGroup(fmt.Sprintf("unbuffered/size=%v/goroutines=%d", holdfast.Size(size), n), fmt.Sprintf("records of %v, one write(2) each", holdfast.Size(size)), w, []*arm{
				{Name: "holdfast", Note: "a Writer, " + w.policy, Do: how{open: openHoldfast}},
				{Name: "os.File", Note: "the same Writes", Do: how{open: openFile}},
			}))
		}
	}
	return all
}

// formatted are records that take a program some time to make: users see a sink's cost there.
func formatted() (all []*group) {
	for _, rounds := range []int{1, 5} {
		for _, n := range []int{1, 2, 8, 64} {
			w := work{goroutines: n, each: 2_000_000 / rounds / n, size: 40, policy: "buffer=256KiB,sync=never", closeTimed: true, format: rounds}
			took := time.Duration(rounds) * 200
			g := newGroup(fmt.Sprintf("format=%v/goroutines=%d", took, n), fmt.Sprintf("records of 40B, each after some %v of formatting", took), w, append(bufios(w),
				&arm{Name: "limit no sink", Note: "the formatting alone, by as many goroutines", Do: how{open: openNothing, read: nothing}}))
			g.Best = "bufio"
			all = append(all, g)
		}
	}
	return all
}

// limits are the bounds of any sink, by one goroutine that makes as many records.
func limits(w work) []*arm {
	alone := w
	alone.goroutines, alone.each = 1, w.records()
	return []*arm{
		{Name: "limit write256", Note: "write(2) alone: as many bytes from one block of 256 KiB, and no records", Do: how{work: alone, whole: writeOnly}},
		{Name: "limit memcpy", Note: "the records are copied into 256 KiB of memory; no file", Do: how{work: alone, whole: copyOnly}},
		{Name: "limit C loop", Note: "a loop in C that makes the records, copies them into 256 KiB of memory and writes these with write(2)", Do: how{work: alone, open: openC}},
	}
}

// processors are more Ps than processors, beside the usual number.
func processors() (all []*group) {
	for _, n := range []int{1, 8, 64, 512} {
		w := work{goroutines: n, each: 4_000_000 / n, size: 40, policy: "buffer=256KiB,sync=never", closeTimed: true, procs: 2}
		arms := []*arm{{Name: "holdfast", Note: "with GOMAXPROCS 2", Do: how{open: openHoldfast}}}
		for _, procs := range []int{8, 32} {
			more := w
			more.procs = procs
			arms = append(arms, &arm{Name: fmt.Sprintf("holdfast GOMAXPROCS=%d", procs), Note: "the same with so many Ps", Do: how{work: more, open: openHoldfast}})
		}
		all = append(all, newGroup(fmt.Sprintf("procs/goroutines=%d", n), "records of 40B with more Ps than there are processors", w, arms))
	}
	return all
}

// large are Writes of any size through any buffer, by one goroutine: never synced, or until
// they are durable.
func large() (all []*group) {
	add := func(sync string, size int, total int) {
		for _, buffer := range []holdfast.Size{4 * kib, 64 * kib, 256 * kib, mib, 4 * mib, 16 * mib, 64 * mib} {
			w := work{goroutines: 1, each: min(300_000, total/size), size: size, policy: fmt.Sprintf("buffer=%v,sync=%s", buffer, sync), closeTimed: true}
			arms := []*arm{
				{Name: "holdfast", Note: "a Writer", Do: how{open: openHoldfast}},
				{Name: "os.File", Note: "the same Writes", Do: how{open: openFile}},
				{Name: "bufio", Note: "a bufio.Writer", Do: how{open: openBufio}},
			}
			name := "large"
			if sync == "never" {
				arms = append(arms, limits(w)...)
			} else {
				name = "close/sync=" + sync
				arms[1].Note, arms[2].Note = "the same Writes, then fdatasync", "a bufio.Writer, then fdatasync"
				arms = append(arms, &arm{Name: "dd", Note: "dd conv=fdatasync with blocks of a record; its start is in the clock", Do: how{whole: dd}})
			}
			g := newGroup(fmt.Sprintf("%s/size=%v/buffer=%v", name, holdfast.Size(size), buffer), fmt.Sprintf("Writes of %v by one goroutine, %s", holdfast.Size(size), w.policy), w, arms)
			g.Job = extra(size == 40 || size == 16*kib || size == 32*kib || buffer == 16*mib)
			all = append(all, g)
		}
	}
	for _, size := range []int{40, 200, 4 * kib, 16 * kib, 32 * kib, 64 * kib, 128 * kib, mib} {
		add("never", size, 128*mib)
	}
	for _, sync := range []string{"close", "1s"} {
		for _, size := range []int{64 * kib, mib} {
			add(sync, size, 512*mib)
		}
	}
	return all
}

// lives are files of one record.
func lives() (all []*group) {
	for _, buffer := range []string{"0", "4KiB", "64KiB", "256KiB", "64MiB"} {
		w := work{goroutines: 1, each: 5000, size: 40, policy: "buffer=" + buffer + ",sync=never"}
		g := newGroup("lives/buffer="+buffer, "files of one record of 40B, one after the other, "+w.policy, w, []*arm{
			{Name: "holdfast", Note: "holdfast.Create, Write, Close", Do: how{whole: live(func(path string, p holdfast.Policy) (io.WriteCloser, error) {
				return holdfast.Create(path, p)
			})}},
			{Name: "os.File", Note: "os.Create, Write, Close", Do: how{whole: live(func(path string, _ holdfast.Policy) (io.WriteCloser, error) {
				return os.Create(path)
			})}},
		})
		g.Unit = "file"
		all = append(all, g)
	}
	return all
}

// create opens the file that an arm appends to, for every arm that does not
// insist on doing so itself.
func create(dir string) (*os.File, error) {
	return os.OpenFile(logPath(dir), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o666)
}

// closer closes the file, and syncs it before where ours does.
func closer(f *os.File, w work) func() error {
	if w.parsed().Sync.Mode == holdfast.SyncNever {
		return f.Close
	}
	return func() error { return errors.Join(fdatasync(f), f.Close()) }
}

func openFile(dir string, w work) (*sink, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	return &sink{writer: shared(f), close: closer(f, w)}, nil
}

func openBufio(dir string, w work) (*sink, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	b, end := bufio.NewWriterSize(f, w.buffer()), closer(f, w)
	return &sink{writer: shared(lock(b, w)), close: func() error { return errors.Join(b.Flush(), end()) }}, nil
}

// lock puts a mutex around what goroutines share.
func lock(to io.Writer, w work) io.Writer {
	if w.goroutines == 1 {
		return to
	}
	return &locked{w: to}
}

// locked is the mutex that people put around a bufio.Writer.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	n, err := l.w.Write(p)
	l.mu.Unlock() // not deferred: the cheapest that the mutex can be
	return n, err
}

func openZap(dir string, w work) (*sink, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	z := &zapcore.BufferedWriteSyncer{WS: f, Size: w.buffer(), FlushInterval: w.parsed().Sync.Every}
	if w.parsed().Sync.Mode == holdfast.SyncNever {
		// AddSync hides the file's Sync, so that Stop flushes without an fsync.
		z.WS = zapcore.AddSync(struct{ io.Writer }{f})
	}
	return &sink{writer: shared(z), close: func() error { return errors.Join(z.Stop(), f.Close()) }}, nil
}

func openLumberjack(dir string, _ work) (*sink, error) {
	l := &lumberjack.Logger{Filename: logPath(dir), MaxSize: 1 << 20} // megabytes
	// Rotate opens the file now: without it the first Write would, in the clock.
	if err := l.Rotate(); err != nil {
		return nil, err
	}
	return &sink{writer: shared(l), close: l.Close}, nil
}

func openFilestream(dir string, w work) (*sink, error) {
	if err := flag.CommandLine.Parse(nil); err != nil { // it refuses to work before
		return nil, err
	}
	f := filestream.MustCreate(logPath(dir), false)
	// MustClose syncs, which no arm does: it is left out.
	return &sink{writer: shared(lock(f, w)), close: func() error { f.MustFlush(false); return nil }}, nil
}

func openNothing(string, work) (*sink, error) {
	return &sink{writer: shared(io.Discard), close: func() error { return nil }}, nil
}

// writeOnly writes as many bytes from one block of memory, and makes no records.
func writeOnly(dir string, w work) (s command.Sample, err error) {
	f, err := create(dir)
	if err != nil {
		return s, err
	}
	defer f.Close()
	memory := bytes.Repeat([]byte{'a'}, block)
	start, cpu := time.Now(), command.CPUTime()
	for left := w.bytes(); left > 0 && err == nil; left -= block {
		_, err = f.Write(memory[:min(left, block)])
	}
	s = command.Sample{Elapsed: time.Since(start), CPU: command.CPUTime() - cpu, Units: w.records()}
	if err != nil {
		return s, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != w.bytes() {
		err = fmt.Errorf("the file has %d bytes, not %d", info.Size(), w.bytes())
	}
	return s, err
}

// copyOnly makes the records and copies them.
func copyOnly(_ string, w work) (s command.Sample, err error) {
	rec, memory := newRecord(w.size, 0), make([]byte, max(block, w.size))
	start, cpu := time.Now(), command.CPUTime()
	used := 0
	for seq := range w.each {
		rec.number(seq)
		if used+w.size > len(memory) {
			used = 0
		}
		used += copy(memory[used:], rec)
	}
	s = command.Sample{Elapsed: time.Since(start), CPU: command.CPUTime() - cpu, Units: w.records()}
	if last := memory[used-w.size : used]; !bytes.Equal(last, rec) {
		err = errors.New("the last record was not copied")
	}
	return s, err
}

// dd lets that program write as many bytes until they are durable.
func dd(dir string, w work) (s command.Sample, err error) {
	c := exec.Command("dd", "if=/dev/zero", "of="+logPath(dir), fmt.Sprint("bs=", w.size), fmt.Sprint("count=", w.each), "conv=fdatasync", "status=none")
	c.Stderr = os.Stderr
	start := time.Now()
	err = c.Run()
	s.Elapsed, s.Units = time.Since(start), w.each
	if errors.Is(err, exec.ErrNotFound) {
		return s, fmt.Errorf("dd is not installed (%w)", errUnsupported)
	}
	if err != nil {
		return s, err
	}
	s.CPU = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	info, err := os.Stat(logPath(dir))
	if err == nil && info.Size() != w.bytes() {
		err = fmt.Errorf("dd wrote %d bytes", info.Size())
	}
	return s, err
}

// live makes a file for each record.
func live(create func(string, holdfast.Policy) (io.WriteCloser, error)) func(string, work) (command.Sample, error) {
	return func(dir string, w work) (s command.Sample, err error) {
		rec, names, policy := newRecord(w.size, 0), make([]string, w.each), w.parsed()
		for i := range names {
			names[i] = filepath.Join(dir, fmt.Sprint(i))
		}
		start, cpu := time.Now(), command.CPUTime()
		for i, name := range names {
			rec.number(i)
			f, err := create(name, policy)
			if err != nil {
				return s, err
			}
			if _, err := f.Write(rec); err != nil {
				return s, err
			}
			if err := f.Close(); err != nil {
				return s, err
			}
		}
		s = command.Sample{Elapsed: time.Since(start), CPU: command.CPUTime() - cpu, Units: len(names)}
		for i, name := range names {
			rec.number(i)
			if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, rec) {
				return s, fmt.Errorf("%s has %q: %w", name, got, err)
			}
		}
		return s, nil
	}
}
