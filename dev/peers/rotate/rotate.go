// Package rotate counts what logs that rotate lose: holdfast's rotate beside lumberjack and
// timberjack.
//
// Goroutines write numbered records to one log. Meanwhile it rotates by size or by time, or another
// program disturbs it. That moves the log (and may ask for a new file, as by SIGHUP), removes it, or copies
// and truncates it. Or it takes the permission to change the directory, or fills the disk. Then all files of
// the log are read. The records that are lost, occur twice, or are no whole line are counted.
//
// Start with troubles.
package rotate

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/DeRuina/timberjack"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/rotate"
)

// Kind compares what logs lose.
var Kind = command.Kind{Name: "rotate", Does: "what logs that rotate lose when they are rotated, moved, removed, truncated, denied and out of room, beside lumberjack and timberjack", Run: run}

const goroutines = 8

// A sink is a log that rotates.
type sink interface {
	io.WriteCloser
	Rotate() error // its call for a program that gets a SIGHUP
}

// Limits say when a log rotates by itself; zero is never.
type limits struct {
	size   holdfast.Size
	every  time.Duration
	keep   int  // backups; 0 is all
	shared bool // it is open more than once, as several processes have it
}

// An arm opens a log that rotates.
type arm struct {
	name string
	open func(path string, at limits) (sink, error)
}

// reopening is a log whose answer to a SIGHUP is Reopen.
type reopening struct{ *rotate.File }

func (f reopening) Rotate() error { return f.Reopen() }

func openRotate(p holdfast.Policy) func(string, limits) (sink, error) {
	return func(path string, at limits) (sink, error) {
		f, err := rotate.Open(path, rotate.Options{Policy: p, MaxSize: at.size, RotationInterval: at.every, MaxBackups: at.keep, Shared: at.shared})
		return reopening{f}, err
	}
}

// A timed lumberjack is rotated by its program: it has no rotation by time.
type timed struct {
	*lumberjack.Logger
	stop, stopped chan struct{}
}

func openLumberjack(path string, at limits) (sink, error) {
	l := &lumberjack.Logger{Filename: path, MaxSize: int(at.size / holdfast.MiB), MaxBackups: at.keep}
	if at.every == 0 {
		return l, nil
	}
	t := timed{l, make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(t.stopped)
		for tick := time.Tick(at.every); ; {
			select {
			case <-t.stop:
				return
			case <-tick:
				l.Rotate() // it tries again after a failure
			}
		}
	}()
	return t, nil
}

func (t timed) Close() error {
	close(t.stop)
	<-t.stopped
	return t.Logger.Close()
}

var arms = []arm{
	{"`rotate`, `Unbuffered()`", openRotate(holdfast.Unbuffered())},
	{"`rotate`, `Periodic(time.Second)`", openRotate(holdfast.Periodic(time.Second))},
	{"lumberjack", openLumberjack},
	{"timberjack", func(path string, at limits) (sink, error) {
		return &timberjack.Logger{Filename: path, MaxSize: int(at.size / holdfast.MiB), RotationInterval: at.every, MaxBackups: at.keep}, nil
	}},
}

// A trouble is an event that befalls a log while it is written to.
type trouble struct {
	name    string
	at      limits
	times   int                                     // how often do is called
	halves  bool                                    // a logger holds a lock and writes a record and its line feed by two Writes
	opens   int                                     // how often the log is open at once; 0 is once
	paced   bool                                    // the records come at a rate: what is noticed within a second needs seconds
	prepare func(*trial, int) (func() error, error) // for n records; returns the function that undoes it
	do      func(*trial) error
}

var troubles = []trouble{
	{name: "rotated by size, at 1 MiB", at: limits{size: holdfast.MiB}},
	{name: "rotated by size, and each record is two Writes", at: limits{size: holdfast.MiB}, halves: true},
	{name: "rotated by size, and open twice, as two processes have it", at: limits{size: holdfast.MiB, shared: true}, opens: 2},
	{name: "rotated by time, each second", at: limits{every: time.Second}, paced: true},
	{name: "moved, then a SIGHUP", times: 9, do: func(t *trial) error { return errors.Join(t.move(), t.log.Rotate()) }},
	{name: "moved", times: 3, paced: true, do: (*trial).move},
	{name: "removed", times: 3, paced: true, do: (*trial).remove},
	{name: "copied and truncated", times: 3, paced: true, do: (*trial).truncate},
	{name: "in a directory without write permission, a third of the time", at: limits{size: holdfast.MiB}, times: 2, paced: true, prepare: (*trial).mayForbid, do: (*trial).forbid},
	{name: "on a full disk, a third of the time", at: limits{size: holdfast.MiB}, times: 2, paced: true, prepare: (*trial).mount, do: (*trial).fill},
}

// A trial is one log under one trouble.
type trial struct {
	root, dir, path string // dir is in root, and has nothing but the log
	log             sink
	others          []sink       // the same log, open again
	logger          sync.Mutex   // of a logger that writes a record by two Writes
	writing         sync.RWMutex // held alone while nothing may be written
	moves           int
	held            []held // files that another program has moved or removed
	disturbed       bool   // the directory is denied, or the disk full
}

// A held file is open since it was moved or removed, when it had a size.
type held struct {
	*os.File
	size    int64
	removed bool
}

// take opens the file and then has it moved or removed.
func (t *trial) take(removed bool, away func() error) error {
	f, err := os.Open(t.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it has not come back
	}
	if err != nil {
		return err
	}
	err = away()
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr); err != nil {
		return errors.Join(err, f.Close())
	}
	t.held = append(t.held, held{f, info.Size(), removed})
	return nil
}

func (t *trial) move() error {
	t.moves++
	return t.take(false, func() error { return os.Rename(t.path, fmt.Sprintf("%s.%d", t.path, t.moves)) })
}

func (t *trial) remove() error { return t.take(true, func() error { return os.Remove(t.path) }) }

// truncate does what logrotate's copytruncate does, but nothing is written in between: what that loses is
// no log's fault.
func (t *trial) truncate() error {
	t.writing.Lock()
	defer t.writing.Unlock()
	data, err := os.ReadFile(t.path)
	if err != nil {
		return err
	}
	t.moves++
	return errors.Join(os.WriteFile(fmt.Sprintf("%s.%d", t.path, t.moves), data, 0o666), os.Truncate(t.path, 0))
}

func (t *trial) mayForbid(int) (func() error, error) {
	allow := func() error { return forbidChanges(t.dir, false) }
	return allow, errors.Join(forbidChanges(t.dir, true), allow())
}

// forbid has no file made, renamed or removed in the directory, and then permits it again.
func (t *trial) forbid() error {
	t.disturbed = !t.disturbed
	return forbidChanges(t.dir, t.disturbed)
}

// mount has the log on a disk of its own, with room for the records.
func (t *trial) mount(records int) (func() error, error) {
	unmount, err := mountSmall(t.root, int64(8*holdfast.MiB)+int64(records)*200)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(t.dir, 0o700); err != nil {
		return nil, errors.Join(err, unmount())
	}
	return unmount, nil
}

// fill leaves the disk no room, and then makes room again.
func (t *trial) fill() error {
	ballast := filepath.Join(t.root, "ballast")
	if t.disturbed = !t.disturbed; !t.disturbed {
		return os.Remove(ballast)
	}
	f, err := os.Create(ballast)
	if err != nil {
		return err
	}
	for chunk := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(chunk)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// record returns the nth record of goroutine g.
func record(g, n int) []byte {
	return fmt.Appendf(nil, "%d %d %s.\n", g, n, strings.Repeat("x", 60+n*7%60))
}

// A count has the records by their fate.
type count struct {
	records int // that were accepted
	refused int
	late    int // written to a file after it had been moved or removed
	lost    int
	twice   int
	split   int   // lines that are no record: pieces of one
	zeros   int64 // bytes that nobody wrote
	files   int
}

// measure writes the given number of records, with a trouble in between, and counts them.
func measure(in string, a arm, x trouble, records, rate int) (c count, err error) {
	root, err := os.MkdirTemp(in, "log-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	dir := filepath.Join(root, "log")
	t := &trial{root: root, dir: dir, path: filepath.Join(dir, "app.log")}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return c, err
	}
	if x.prepare != nil {
		undo, failed := x.prepare(t, records)
		if failed != nil {
			return c, failed
		}
		defer func() { err = errors.Join(err, undo()) }()
	}
	defer func() {
		for _, f := range t.held {
			err = errors.Join(err, f.Close())
		}
	}()
	if t.log, err = a.open(t.path, x.at); err != nil {
		return c, err
	}
	for range x.opens - 1 {
		other, err := a.open(t.path, x.at)
		if err != nil {
			return c, errors.Join(err, t.log.Close())
		}
		t.others = append(t.others, other)
	}
	accepted, refused, troubled := t.write(x, records, rate)
	err = t.log.Close()
	for _, other := range t.others {
		err = errors.Join(err, other.Close())
	}
	if errors.Is(err, holdfast.ErrUnlinked) {
		err = nil // its lines are counted
	}
	if err = errors.Join(troubled, err); err != nil {
		return c, err
	}
	c.refused = refused
	return c, t.count(&c, accepted)
}

// write has the goroutines write the records, and returns which of each were accepted.
func (t *trial) write(x trouble, records, rate int) (accepted [goroutines][]bool, refused int, err error) {
	var written, refusals atomic.Int64
	var one sync.Mutex
	var group sync.WaitGroup
	each := records / goroutines
	start := time.Now()
	for g := range goroutines {
		accepted[g] = make([]bool, each)
		group.Go(func() {
			for n := range each {
				if x.paced {
					time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second * goroutines / time.Duration(rate))))
				}
				t.writing.RLock()
				failed := t.put(t.of(g), record(g, n), x.halves)
				t.writing.RUnlock()
				if accepted[g][n] = failed == nil; failed != nil {
					refusals.Add(1)
				}
				at, every := int(written.Add(1)), records/(x.times+1)
				if x.do != nil && at%every == 0 && at/every <= x.times {
					one.Lock()
					err = errors.Join(err, x.do(t))
					one.Unlock()
				}
			}
		})
	}
	group.Wait()
	return accepted, int(refusals.Load()), err
}

// of returns the log as goroutine g has it open.
func (t *trial) of(g int) io.Writer {
	if n := g % (1 + len(t.others)); n > 0 {
		return t.others[n-1]
	}
	return t.log
}

// put writes one record, by one Write or as a logger that writes the line feed alone.
func (t *trial) put(to io.Writer, record []byte, halves bool) error {
	if !halves {
		_, err := to.Write(record)
		return err
	}
	t.logger.Lock()
	defer t.logger.Unlock()
	end := len(record) - 1
	if _, err := to.Write(record[:end]); err != nil {
		return err
	}
	_, err := to.Write(record[end:])
	return err
}

// count reads all files of the log. Records in a file at its removal count as present.
func (t *trial) count(c *count, accepted [goroutines][]bool) error {
	var texts [][]byte
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return err
	}
	c.files = len(entries)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(t.dir, e.Name()))
		if err != nil {
			return err
		}
		texts = append(texts, data)
	}
	for _, f := range t.held {
		data, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		c.late += bytes.Count(data[min(f.size, int64(len(data))):], []byte{'\n'})
		if f.removed {
			texts = append(texts, data[:min(f.size, int64(len(data)))])
		}
	}
	var there [goroutines]map[int]int
	for g := range there {
		there[g] = map[int]int{}
	}
	for _, text := range texts {
		for line := range bytes.Lines(text) {
			whole := bytes.TrimLeft(line, "\x00")
			c.zeros += int64(len(line) - len(whole))
			var g, n int
			if _, err := fmt.Sscanf(string(whole), "%d %d ", &g, &n); err != nil || g < 0 || g >= goroutines || !bytes.Equal(whole, record(g, n)) {
				c.split++
				continue
			}
			there[g][n]++
		}
	}
	for g := range accepted {
		for n, ok := range accepted[g] {
			if ok {
				c.records++
			}
			if ok && there[g][n] == 0 {
				c.lost++
			}
			c.twice += max(0, there[g][n]-1)
		}
	}
	return nil
}

// The last row of the table is of another kind: a job that runs again and again, and writes some records each time, with
// a limit of backups.
const (
	runs, perRun, mostBackups = 150, 20, 3
	shortLives                = "opened, written and closed 150 times, with at most 3 backups: files left"
)

// lives returns the number of files that short lives leave.
func lives(in string, a arm) (files int, err error) {
	dir, err := os.MkdirTemp(in, "log-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for n := range runs {
		log, err := a.open(filepath.Join(dir, "app.log"), limits{size: holdfast.MiB, keep: mostBackups})
		if err != nil {
			return 0, err
		}
		for i := range perRun {
			if _, err := log.Write(record(n, i)); err != nil {
				return 0, errors.Join(err, log.Close())
			}
		}
		rotate := log.Rotate
		if f, ok := log.(reopening); ok {
			rotate = f.File.Rotate
		}
		if err := errors.Join(rotate(), log.Close()); err != nil {
			return 0, err
		}
	}
	left, err := os.ReadDir(dir)
	return len(left), err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("rotate", flag.ContinueOnError)
	records := f.Int("records", 80_000, "how many records a log gets")
	rate := f.Int("rate", 8000, "records a second where another program moves, removes or truncates the log")
	dir := f.String("dir", "", "where they write (default: the directory for temporary files)")
	if err := command.Parse(f, args, stderr); err != nil {
		return err
	}
	if *records < 100*goroutines || *rate < goroutines {
		return command.Misuse("-records=%d -rate=%d: give at least %d and %d", *records, *rate, 100*goroutines, goroutines)
	}
	var why []string // some are not measured
	table := tabwriter.NewWriter(stdout, 0, 0, 1, ' ', 0)
	fmt.Fprint(table, "| the log is |")
	for _, a := range arms {
		fmt.Fprintf(table, "\t%s |", a.name)
	}
	fmt.Fprintf(table, "\n|---|%s\n", strings.Repeat("\t---|", len(arms)))
	for _, x := range troubles {
		fmt.Fprintf(table, "| %s |", x.name)
		for _, a := range arms {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c, err := measure(*dir, a, x, *records, *rate)
			if errors.Is(err, errors.ErrUnsupported) {
				why = append(why, fmt.Sprintf("%s, %s: %v", x.name, a.name, err))
				fmt.Fprint(table, "\tnot measured |")
				continue
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", x.name, a.name, err)
			}
			fmt.Fprintf(table, "\t%v |", c)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintf(table, "| %s |", shortLives)
	for _, a := range arms {
		files, err := lives(*dir, a)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", shortLives, a.name, err)
		}
		fmt.Fprintf(table, "\t%d files |", files)
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		return err
	}
	for _, text := range why {
		fmt.Fprintln(stdout, text)
	}
	return nil
}

// String says how many records were lost, and every other deviation.
func (c count) String() string {
	text := fmt.Sprintf("%d lost", c.lost)
	for _, x := range []struct {
		n    int64
		what string
	}{{int64(c.refused), "refused"}, {int64(c.twice), "twice"}, {int64(c.split), "pieces"}, {c.zeros, "bytes of zeros"}, {int64(c.late), "late"}} {
		if x.n > 0 {
			text += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	return text
}
