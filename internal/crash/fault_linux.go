package crash

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// An injection is a fault of one call, or of all of its kind from one on.
type injection struct {
	kind   syscallfault.Kind
	errno  syscall.Errno // 0: the write is short, or the call comes late
	short  bool          // with an errno the next write fails, as on a disk that becomes full
	always bool
	nth    int
}

func (in injection) String() string {
	what := "comes 20ms late"
	if in.short && in.errno != 0 {
		what = "writes half of its bytes, and the next fails with " + unix.ErrnoName(in.errno)
	} else if in.short {
		what = "writes half of its bytes"
	} else if in.errno != 0 {
		what = "fails with " + unix.ErrnoName(in.errno)
	}
	if in.always {
		return fmt.Sprintf("from %s %d on each %s", in.kind, in.nth, what)
	}
	return fmt.Sprintf("%s %d %s", in.kind, in.nth, what)
}

// apply does it to a call, and reports whether the call fails.
func (in injection) apply(c *syscallfault.Call) bool {
	last := in.nth
	if in.short && in.errno != 0 {
		last++
	}
	if c.Name == "sync" { // which can't fail
		return false
	}
	if c.Kind != in.kind || c.Number < in.nth || c.Number > last && !in.always {
		return false
	}
	switch {
	case in.short && (in.errno == 0 || c.Number == in.nth):
		c.Shorten()
		return false
	case in.errno != 0:
		c.Fail(in.errno)
	default:
		c.Delay = 20 * time.Millisecond
	}
	return in.errno != 0
}

// injections are the possible faults of a program that makes this number of calls of each kind.
func injections(counts map[syscallfault.Kind]int, r *rand.Rand) (all []injection) {
	// These are the errors that calls of a kind may return.
	faultsOf := map[syscallfault.Kind][]syscall.Errno{
		syscallfault.Write:    {unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.EINTR, unix.EAGAIN},
		syscallfault.Sync:     {unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.EROFS},
		syscallfault.Open:     {unix.EIO, unix.ENOSPC, unix.EMFILE, unix.EROFS, unix.EINTR},
		syscallfault.Rename:   {unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.EROFS},
		syscallfault.Link:     {unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.EROFS},
		syscallfault.Unlink:   {unix.EIO, unix.EROFS},
		syscallfault.Close:    {unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.EINTR},
		syscallfault.Allocate: {unix.EIO, unix.ENOSPC, unix.EDQUOT, unix.EOPNOTSUPP},
	}
	for _, kind := range syscallfault.Kinds {
		n := counts[kind]
		if n == 0 {
			continue
		}
		places := []int{1, 2, (n + 1) / 2, max(1, n-1), n, 1 + r.IntN(n)}
		slices.Sort(places)
		for _, nth := range slices.Compact(places) {
			if nth > n {
				continue
			}
			all = append(all, injection{kind: kind, nth: nth})
			if kind == syscallfault.Write {
				all = append(all, injection{kind: kind, nth: nth, short: true}, injection{kind: kind, nth: nth, short: true, always: true},
					injection{kind: kind, nth: nth, short: true, errno: unix.ENOSPC}, injection{kind: kind, nth: nth, short: true, errno: unix.ENOSPC, always: true})
			}
			for _, e := range faultsOf[kind] {
				all = append(all, injection{kind: kind, nth: nth, errno: e})
				if e != unix.EINTR { // one that never ends is no signal
					all = append(all, injection{kind: kind, nth: nth, errno: e, always: true})
				}
			}
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	// There may be time for few. So one of each sort comes before the second of any, and failures that are over come first.
	// Syncs that fail come more often: what they lose shows only where more is written in time.
	// Half of the programs meet two of these first, any ones. The others meet the last, which is Close's, whose nil is an acknowledgement. A run
	// may have one more or less.
	last := r.IntN(2) == 0
	turns, sorts := map[injection]int{}, map[injection]int{}
	for _, in := range all {
		sort := injection{kind: in.kind, short: in.short, always: in.always}
		if in.errno != 0 {
			sort.errno = unix.EIO
		}
		turns[in] = 3 * sorts[sort]
		if in.errno == 0 || in.always {
			turns[in]++
		} else if in.kind == syscallfault.Sync {
			turns[in] = sorts[sort]
			if !last {
				turns[in] -= 2
			}
		}
		if n := counts[syscallfault.Sync]; last && in.kind == syscallfault.Sync && in.errno == unix.EIO && (in.nth == n && !in.always || in.nth == n-1 && in.always) {
			turns[in] = -1
		}
		sorts[sort]++
	}
	slices.SortStableFunc(all, func(a, b injection) int { return cmp.Compare(turns[a], turns[b]) })
	return all
}

// faultPatience is how long a program may take that a fault has met: then it hangs.
const faultPatience = time.Minute

// faultNotes is how many notes a workload makes before it ends in order; one that copies makes fewer.
const faultNotes = 60

// A faulted is the outcome of a program under an injection.
type faulted struct {
	counts map[syscallfault.Kind]int
	exit   error
	said   string // its output
	hung   bool
	calls  []string // see lossy
}

// underFault runs a program to its end, and at does what an injection is, if there is one. A sync that fails loses what it was to
// make durable, as a disk's does: see lossy.
func underFault(ctx context.Context, cmd *exec.Cmd, dir string, kinds []syscallfault.Kind, in *injection, at func(*syscallfault.Call)) (f faulted, err error) {
	var said bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &said
	}
	cmd.Stderr = &said
	g, err := newGroup()
	if err != nil {
		return f, err
	}
	defer g.end()
	g.take(cmd)
	cmd.WaitDelay = faultPatience // a process it left running may hold its output
	s, err := syscallfault.Start(cmd, dir, kinds, at)
	if err != nil {
		return f, err
	}
	var waits atomic.Bool
	late := time.AfterFunc(faultPatience, func() {
		waits.Store(waitsInKernel(cmd.Process.Pid))
		_ = cmd.Cancel() // it has ended meanwhile, or is killed
	})
	f.exit = cmd.Wait()
	f.hung = !late.Stop()
	f.counts, err = s.Stop()
	f.said = said.String()
	if ctx.Err() != nil {
		return f, context.Cause(ctx)
	}
	if waits.Load() {
		err = errors.Join(err, fmt.Errorf("the disk did not answer: a call of the program still waited after %v: %w", faultPatience, os.ErrDeadlineExceeded))
	}
	var injected syscall.Errno
	if in != nil {
		injected = in.errno
	}
	return f, errors.Join(err, fullDisk(f.said, injected))
}

// waitsInKernel reports whether a thread of a process waits where no signal but a kill ends that, as for a disk.
func waitsInKernel(process int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", process))
	return slices.ContainsFunc(stats, func(name string) bool {
		stat, _ := os.ReadFile(name) // the state is behind the name, which may have any bytes
		return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" D "))
	})
}

// byFault makes the verdict of level fault. A run counts the calls. Then each of some injections
// has a run, and a second one that goes on with the first one's files.
func (v *Verdict) byFault(ctx context.Context, c Cell, o Options, most time.Duration) error {
	if c.command != nil {
		return v.command(ctx, c.command, o, most)
	}
	w, end := c.Workload, time.Now().Add(most)
	r := rand.New(rand.NewPCG(v.Seed, 4))
	counted, err := v.faultChain(ctx, w, o, r.Uint64(), nil)
	if err != nil || v.Failure != nil {
		return err
	}
	least := max(leastFaults, o.Least)
	if w.Failing {
		least = math.MaxInt // a liar is caught by the first that meets it
	}
	all := injections(counted, r)
	if w.Parts != nil && w.Parts(v.Policy) {
		all = slices.DeleteFunc(all, func(in injection) bool { return in.short && in.errno != 0 })
	}
	return inject(ctx, v, all, least, end, func(in injection, seed uint64) error {
		_, err := v.faultChain(ctx, w, o, seed, &in)
		return err
	})
}

// inject runs a program with each of some cases, until a time or a failure.
func inject[Case any](ctx context.Context, v *Verdict, cases []Case, least int, end time.Time, run func(Case, uint64) error) error {
	v.FaultsOf = len(cases)
	for n, c := range cases {
		if v.Failure != nil || n >= least && time.Now().After(end) {
			break
		}
		if err := run(c, v.Seed+uint64(n)); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			return err
		}
		v.Faults++
	}
	return nil
}

// leastFaults is how many injections each workload meets under each policy at least.
const leastFaults = 2

// faultChain runs a workload with an injection, and again without, or once to count its calls.
func (v *Verdict) faultChain(ctx context.Context, w *Workload, o Options, seed uint64, in *injection) (counted map[syscallfault.Kind]int, err error) {
	dir, remove, err := o.Directory()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	targets := w.Targets(v.Policy)
	before := NewSurvivors(len(targets))
	var calls []string // of the first run
	for number := range 2 {
		cmd := o.Child(ctx, w.Name, v.Policy.String(), dir, strconv.FormatUint(seed, 10), strconv.Itoa(number))
		kinds, now := []syscallfault.Kind(nil), in
		switch {
		case number > 0:
			now = nil
		case in == nil:
			kinds = syscallfault.Kinds
		}
		f, notes, crash, err := w.faultRun(ctx, cmd, dir, kinds, now)
		if err != nil {
			return nil, err
		}
		c := NewChecker(targets, v.Loss)
		c.Inherit(before)
		for _, n := range notes {
			c.Note(n)
		}
		if before, err = w.Look(dir, targets); err != nil {
			return nil, err
		}
		violation := c.Judge(crash, before, time.Now().UnixNano(), -1)
		if number == 0 {
			if violation == nil {
				violation = f.judge(in, dir)
			}
			counted, calls = f.counts, f.calls
		} else {
			if violation == nil && (f.exit != nil || f.hung) {
				violation = &Violation{Rule: "again", Words: fmt.Sprintf("the second run, without a fault, failed: %v: %s", f.exit, f.said)}
			}
			c.Tally.TemporaryEnd = before.Temporaries
		}
		if stays := in != nil && in.kind == syscallfault.Unlink; violation == nil && (number > 0 || !stays) {
			violation = w.Leaves(before, stays)
		}
		if crash == Power { // its loss is not the allowed loss of a process's end
			c.Tally.Most, c.Tally.Sum = Extent{}, Extent{}
		}
		v.Tally.Add(c.Tally)
		if violation != nil {
			words := violation.Words
			if in != nil {
				words = fmt.Sprintf("%v: %s", in, words)
			}
			v.Failure = &Failure{Violation: violation, State: State{Crash: crash}, Words: words, Kill: number + 1, Calls: calls}
			break
		}
		if in == nil { // what goes on behind an end in order is level kill's last run
			break
		}
	}
	return counted, nil
}

// faultRun runs a workload once, with an injection if there is one. A sync that fails is followed by a power cut.
func (w *Workload) faultRun(ctx context.Context, cmd *exec.Cmd, dir string, kinds []syscallfault.Kind, in *injection) (f faulted, notes []Note, crash Kind, err error) {
	shared, err := NewNotes()
	if err != nil {
		return f, nil, crash, err
	}
	shared.Give(cmd)
	if w.Files && w.Targets(holdfast.Durable())[0].Object {
		shared.End(faultNotes / 5)
	} else {
		shared.End(faultNotes)
	}
	crash, at := Process, func(*syscallfault.Call) {}
	var lost *lossy
	if in != nil {
		kinds = in.kinds()
		if in.loses() {
			lost, crash = newLossy(dir), Power
		}
		at = func(c *syscallfault.Call) {
			if lost != nil {
				lost.meet(c, *in)
			} else {
				in.apply(c)
			}
		}
	}
	f, err = underFault(ctx, cmd, dir, kinds, in, at)
	notes = shared.All()
	err = errors.Join(err, shared.Close())
	if err == nil && lost != nil {
		err = lost.end()
		f.calls = lost.calls
	}
	return f, notes, crash, err
}

// command makes the verdict of a command line: a clean run says what it makes, and the others are
// judged by that.
func (v *Verdict) command(ctx context.Context, c *Command, o Options, most time.Duration) error {
	end := time.Now().Add(most)
	counted, after, err := v.underCommand(ctx, c, o, nil, nil)
	if err != nil || v.Failure != nil {
		return err
	}
	cases := injections(counted, rand.New(rand.NewPCG(v.Seed, 5)))
	return inject(ctx, v, cases, max(leastFaults, o.Least), end, func(in injection, _ uint64) error {
		_, _, err := v.underCommand(ctx, c, o, after, &in)
		return err
	})
}

func (v *Verdict) underCommand(ctx context.Context, c *Command, o Options, want map[string]string, in *injection) (counted map[syscallfault.Kind]int, found map[string]string, err error) {
	dir, remove, err := o.Directory()
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	for name, text := range c.Before {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return nil, nil, err
		}
	}
	kinds, lost := syscallfault.Kinds, newLossy(dir)
	cmd := o.Self(ctx, c.Args(dir)...)
	cmd.Stdin = strings.NewReader(c.Input)
	var out strings.Builder
	cmd.Stdout = &out
	if in != nil {
		kinds = in.kinds()
	}
	if err := lost.keep(); err != nil {
		return nil, nil, err
	}
	f, err := underFault(ctx, cmd, dir, kinds, in, func(call *syscallfault.Call) {
		switch {
		case in == nil:
		case in.loses():
			lost.meet(call, *in)
		default:
			in.apply(call)
		}
	})
	if err = errors.Join(err, lost.end()); err != nil {
		return nil, nil, err
	}
	found = map[string]string{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		found[path[len(dir)+1:]] = string(b)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	violation := f.judge(in, dir)
	if in == nil && f.exit != nil {
		return nil, nil, fmt.Errorf("%s failed without a fault: %w: %s", c.Name, f.exit, f.said)
	}
	if violation == nil && in != nil {
		violation = c.judge(&f, in, out.String(), want, found)
	}
	when := "without a fault"
	if in != nil {
		when = in.String()
	} else if name := c.differs(found); violation == nil && name != "" {
		violation = &Violation{Rule: "lost", Words: fmt.Sprintf("%s has %d bytes of %d or others", name, len(found[name]), len(c.After[name]))}
	}
	v.Tally.States++
	if violation != nil {
		v.Tally.Violations++
		v.Failure = &Failure{Violation: violation, Words: fmt.Sprintf("%s: %s", when, violation.Words), Calls: lost.calls}
	}
	return f.counts, found, nil
}

// differs returns the name of a file that is not what a clean run must leave, or "".
func (c *Command) differs(found map[string]string) string {
	for name, text := range c.After {
		if found[name] != text {
			return name
		}
	}
	return ""
}

// judge compares the files that a command has left with its report. want are a clean run's files.
func (c *Command) judge(f *faulted, in *injection, printed string, want, found map[string]string) *Violation {
	for name, text := range want {
		old, there := c.Before[name]
		is, left := found[name]
		said := fmt.Sprintf("; it said %q, %v", f.said, f.exit)
		switch {
		case f.exit == nil && is != text:
			return &Violation{Rule: "lost", Words: fmt.Sprintf("%s has %d bytes of %d or others, and the exit code is 0%s", name, len(is), len(text), said)}
		case c.Whole && is != text && (is != old || left != there):
			return &Violation{Rule: "half", Words: fmt.Sprintf("%s is neither the old nor the new file%s", name, said)}
		case strings.Contains(f.said, "nothing of it is left") && left && !there:
			return &Violation{Rule: "message", Words: fmt.Sprintf("%s is there%s", name, said)}
		}
		if acked := Acknowledged([]byte("ack "+strings.ReplaceAll(strings.TrimSpace(printed), "\n", "\nack ")+"\n"), Flushed); c.Acks && len(acked) > 0 {
			lines, n := strings.SplitAfter(text, "\n"), acked[len(acked)-1].N
			if whole := uint64(strings.Count(text, "\n")); n > whole {
				return &Violation{Rule: "lost", N: n, Words: fmt.Sprintf("%d lines were acknowledged, and there are %d%s", n, whole, said)}
			}
			reported := regexp.MustCompile(`\(\d+ lines? from line (\d+) on\)`)
			if failed := reported.FindStringSubmatch(f.said); failed != nil { // they count as dealt with
				from, _ := strconv.ParseUint(failed[1], 10, 63)
				n = min(n, from-1)
			}
			if !strings.HasPrefix(is, strings.Join(lines[:n], "")) {
				return &Violation{Rule: "lost", N: n, Words: fmt.Sprintf("%d lines were acknowledged, and %s has %d bytes%s", n, name, len(is), said)}
			}
		}
	}
	for name := range found {
		if _, wanted := want[name]; !wanted && in.kind != syscallfault.Unlink {
			return &Violation{Rule: "temporaries", Words: fmt.Sprintf("%s is left; it said %q", name, f.said)}
		}
	}
	return nil
}

// byFault gives the program faults until a time. It is ended when it has acknowledged some more, or
// no longer does.
func (x *proving) byFault(ctx context.Context) error {
	counted, err := x.underFault(ctx, nil)
	if err != nil || x.v.Failure != nil || x.v.Unknown != "" {
		return err
	}
	return inject(ctx, x.v, injections(counted, x.r), 3*leastFaults, x.end, func(in injection, _ uint64) error {
		_, err := x.underFault(ctx, &in)
		return err
	})
}

func (x *proving) underFault(ctx context.Context, in *injection) (counted map[syscallfault.Kind]int, err error) {
	err = x.inDirectory(func(dir string) error {
		counted, err = x.faulted(ctx, dir, in)
		return err
	})
	return counted, err
}

// faulted runs the program in a directory with an injection, or to count its calls, and again without.
func (x *proving) faulted(ctx context.Context, dir string, in *injection) (counted map[syscallfault.Kind]int, err error) {
	kinds, lost, at, when := syscallfault.Kinds, newLossy(dir), func(*syscallfault.Call) {}, "without a fault"
	if in != nil {
		kinds, when = in.kinds(), in.String()
		at = func(c *syscallfault.Call) {
			if in.loses() {
				lost.meet(c, *in)
			} else {
				in.apply(c)
			}
		}
	}
	defer func() {
		if x.v.Failure != nil {
			x.v.Failure.Calls = lost.calls
		}
	}()
	out, err := sys.MemoryFile("holdfast-acks")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	const enough = 300 // bytes: some 40 acknowledgements
	const quiet = 3 * time.Second
	some := func() func(int64) bool {
		last, since := int64(0), time.Now()
		return func(printed int64) bool {
			if printed > last {
				last, since = printed, time.Now()
			}
			return printed >= enough || time.Since(since) > quiet
		}
	}
	var s *syscallfault.Supervisor
	_, err = x.live(ctx, dir, out, life{faulted: in != nil, until: some(), start: func(cmd *exec.Cmd) (err error) {
		s, err = syscallfault.Start(cmd, dir, kinds, at)
		return err
	}})
	if s != nil {
		var stopped error
		counted, stopped = s.Stop()
		err = errors.Join(err, stopped)
	}
	if err = errors.Join(err, lost.end()); err != nil {
		return nil, err
	}
	acks, err := printedIn(out)
	if err != nil {
		return nil, err
	}
	judge, err := x.crashed(x.judgeOf(ctx), dir, acks, when)
	if err != nil || x.v.Failure != nil || in == nil || !x.Again && x.Command == "" {
		return counted, err
	}
	again, err := sys.MemoryFile("holdfast-acks")
	if err != nil {
		return nil, err
	}
	defer again.Close()
	l, err := x.live(ctx, dir, again, life{behind: true, until: some()})
	if err != nil {
		return nil, err
	}
	if acks, err = printedIn(again); err != nil {
		return nil, err
	}
	when += ", and run again"
	if x.dead(l, dir, acks, 1, when); x.v.Failure != nil || x.v.Unknown != "" {
		return counted, nil
	}
	_, err = x.crashed(judge, dir, acks, when)
	return counted, err
}

// kinds are the calls that must be seen for an injection.
func (in injection) kinds() []syscallfault.Kind {
	if in.loses() {
		return []syscallfault.Kind{syscallfault.Sync, syscallfault.Write, syscallfault.Rename, syscallfault.Link, syscallfault.Unlink}
	}
	return []syscallfault.Kind{in.kind}
}

// loses reports whether what fails takes away what it was to keep.
func (in injection) loses() bool { return in.kind == syscallfault.Sync && in.errno != 0 }

// judge judges how a program ended and its report. A program that fails must say which file it
// was, and why.
func (f *faulted) judge(in *injection, dir string) *Violation {
	bad := func(rule, words string) *Violation {
		return &Violation{Rule: rule, Words: fmt.Sprintf("%s; it said %q, %v", words, f.said, f.exit)}
	}
	switch {
	case f.hung:
		return bad("hang", fmt.Sprintf("it had not ended after %v", faultPatience))
	case strings.Contains(f.said, "panic:") || strings.Contains(f.said, "fatal error:"):
		return bad("panic", "it panicked")
	case f.exit == nil:
		return nil
	case in == nil || in.errno == 0:
		return bad("message", "no call failed, and it failed")
	case !strings.Contains(strings.ToLower(f.said), in.errno.Error()) &&
		!strings.Contains(f.said, "another sync of the directory failed"): // that one's caller heard why
		return bad("message", fmt.Sprintf("it does not say %q", in.errno.Error()))
	case !strings.Contains(f.said, dir):
		return bad("message", "it names no file")
	}
	return nil
}

// A lossy is a disk that loses for good what a failed sync was to make durable. Its files then have
// the old bytes, or zeros, and its directories the old names. Linux says so once, and of a file to each descriptor that was open, and
// the next sync succeeds. A lost name that is given again after that is a new one.
//
// It sees each call before the call is made. Between two changes of a name by one thread there is a call that it
// sees, and it looks at the names then: so its verdict follows from the sequence of the calls.
type lossy struct {
	dir   string
	data  map[identity][]byte // the durable records
	names map[string]identity
	lost  map[string]identity // names that are not, by a failed sync
	kept  map[string]bool     // durable names that are gone, though a failed sync has lost that
	// links are the targets of durable symbolic links, and lostLinks the targets of the others.
	links, lostLinks map[string]string
	// durable are files by the threads that are writing to them what is on the disk when the call returns.
	durable map[int]*os.File
	owed    map[string]identity // descriptors in /proc that have not reported the failed sync of their file yet
	failed  bool                // a sync has failed
	calls   []string            // what it has seen, a call each
	err     error
}

// An identity is of one file, though its number becomes another's.
type identity struct {
	number  uint64
	born    int64
	bornSub uint32
}

func newLossy(dir string) *lossy {
	return &lossy{dir: dir, data: map[identity][]byte{}, names: map[string]identity{}, lost: map[string]identity{}, kept: map[string]bool{},
		links: map[string]string{}, lostLinks: map[string]string{}, durable: map[int]*os.File{}, owed: map[string]identity{}}
}

func identityOf(f *os.File) (identity, error) {
	x, err := statx(int(f.Fd()), "", unix.AT_EMPTY_PATH)
	return identityIn(x), err
}

func statx(at int, path string, flags int) (x unix.Statx_t, err error) {
	err = unix.Statx(at, path, flags, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_BTIME, &x)
	return x, err
}

func identityIn(x unix.Statx_t) identity { return identity{x.Ino, x.Btime.Sec, x.Btime.Nsec} }

// at is the file that a path leads to now.
func at(path string) (identity, bool) {
	x, err := statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW)
	return identityIn(x), err == nil
}

// keep takes what is there for durable.
func (d *lossy) keep() error {
	d.eachLink(func(path, target string) { d.links[path] = target })
	return d.each(func(path string, f *os.File, id identity) error {
		d.names[path] = id
		return d.file(f, false)
	})
}

// each calls do with the regular files below the directory.
func (d *lossy) each(do func(path string, f *os.File, id identity) error) error {
	return filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !entry.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return nil // it is gone, or its reader is somebody else
		}
		defer f.Close()
		id, err := identityOf(f)
		if err != nil {
			return err
		}
		return do(path, f, id)
	})
}

// eachLink calls do with the symbolic links below the directory.
func (d *lossy) eachLink(do func(path, target string)) {
	_ = filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			if target, err := os.Readlink(path); err == nil {
				do(path, target)
			}
		}
		return nil
	})
}

// meet sees a call before it is made, or fails by an injection.
func (d *lossy) meet(c *syscallfault.Call, in injection) {
	fails := in.apply(c)
	maps.DeleteFunc(d.lost, func(path string, id identity) bool { // a name that is made again is a new one
		is, there := at(path)
		return !there || is != id
	})
	maps.DeleteFunc(d.kept, func(path string, _ bool) bool {
		_, there := at(path)
		return there
	})
	reports := !fails && d.reports(c)
	if reports {
		c.Fail(in.errno)
	}
	d.tell(c, fails, reports)
	for thread, f := range d.durable { // its work, finished or so far
		d.err = errors.Join(d.err, d.file(f, false))
		if thread == c.Thread() {
			d.err = errors.Join(d.err, f.Close())
			delete(d.durable, thread)
		}
	}
	switch c.Kind {
	case syscallfault.Sync:
		d.sync(c, fails)
	case syscallfault.Write:
		if _, flags, err := c.Descriptor(); err == nil && c.Durable(flags) {
			if f, err := c.File(os.O_RDONLY); err == nil {
				d.durable[c.Thread()] = f
			}
		}
	}
}

// tell keeps a call's words: some before the sync that fails, and those behind it.
func (d *lossy) tell(c *syscallfault.Call, fails, reports bool) {
	words := fmt.Sprintf("thread %d: %s %s", c.Thread(), c.Name, d.called(c.Path))
	if c.Kind == syscallfault.Rename {
		words = fmt.Sprintf("thread %d: %s %s to %s", c.Thread(), c.Name, d.called(c.Old()), d.called(c.Path))
	}
	switch {
	case fails:
		words += ": fails"
	case reports:
		words += ": reports the failure"
	}
	d.say(words)
}

// owe notes the other descriptors of a file whose sync fails by one. Linux has each of them report that, once (errseq_t).
func (d *lossy) owe(c *syscallfault.Call, id identity) {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/[0-9]*")
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || !strings.HasPrefix(to, d.dir) || d.isOf(c, link) {
			continue
		}
		if x, err := statx(unix.AT_FDCWD, link, 0); err == nil && identityIn(x) == id {
			d.owed[link] = id
		}
	}
}

// isOf reports whether a call is by a descriptor in /proc.
func (d *lossy) isOf(c *syscallfault.Call, link string) bool {
	process, _, _ := strings.Cut(strings.TrimPrefix(link, "/proc/"), "/")
	return filepath.Base(link) == filepath.Base(c.Link()) && unix.Access(fmt.Sprintf("/proc/%s/task/%d", process, c.Thread()), unix.F_OK) == nil
}

// reports says whether a sync must report an earlier failure, by another descriptor.
func (d *lossy) reports(c *syscallfault.Call) bool {
	if c.Name != "fsync" && c.Name != "fdatasync" {
		return false
	}
	for link, id := range d.owed {
		if d.isOf(c, link) {
			delete(d.owed, link)
			x, err := statx(unix.AT_FDCWD, link, 0)
			return err == nil && identityIn(x) == id // else another file has its number
		}
	}
	return false
}

func (d *lossy) say(words string) {
	const before, behind = 40, 400
	switch {
	case !d.failed && len(d.calls) == before:
		d.calls = d.calls[1:]
	case len(d.calls) == before+behind:
		return
	}
	d.calls = append(d.calls, words)
}

// called is a path below the directory, and the number of the inode that it leads to now.
func (d *lossy) called(path string) string {
	short, err := filepath.Rel(d.dir, path)
	if err != nil {
		short = path
	}
	if is, there := at(path); there {
		return fmt.Sprintf("%s (inode %d)", short, is.number)
	}
	return short
}

// scan returns the regular files of a directory, or of all below it, on a device. It looks again until two looks agree: a
// file whose rename is under way may be at neither of its names.
func (d *lossy) scan(dir string, deep bool, device uint64) (found map[string]identity, err error) {
	const most = 20
	for range most {
		before := found
		found = map[string]identity{}
		err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case entry.IsDir() && path != dir && !deep:
				return fs.SkipDir
			case !entry.Type().IsRegular():
				return nil
			}
			if x, err := statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW); err == nil && unix.Mkdev(x.Dev_major, x.Dev_minor) == device {
				found[path] = identityIn(x)
			}
			return nil
		})
		if err != nil || before != nil && maps.Equal(found, before) {
			break
		}
	}
	return found, err
}

// sync sees a sync before it is made, or fails.
func (d *lossy) sync(c *syscallfault.Call, fails bool) {
	if c.Name == "sync_file_range" {
		return // it promises nothing
	}
	d.failed = d.failed || fails
	open := func() (*os.File, error) { return c.File(os.O_RDONLY) }
	if c.Name == "msync" || c.Name == "sync" {
		open = func() (*os.File, error) { return os.Open(c.Path) }
	}
	f, err := open()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return // the program was killed meanwhile, or its file has no name any more
	}
	if err != nil {
		d.err = errors.Join(d.err, err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	whole := c.Name == "syncfs" || c.Name == "sync"
	if err == nil && !info.IsDir() && !whole {
		d.err = errors.Join(d.err, d.file(f, fails))
		if id, err := identityOf(f); fails && c.Name != "msync" && err == nil {
			d.owe(c, id)
		}
		return
	}
	device := func(f *os.File) (n uint64) {
		var s unix.Stat_t
		d.err = errors.Join(d.err, unix.Fstat(int(f.Fd()), &s))
		return s.Dev
	}
	synced := device(f)
	d.err = errors.Join(d.err, err)
	if whole {
		d.syncNames(d.dir, true, synced, fails)
		d.err = errors.Join(d.err, d.each(func(_ string, file *os.File, _ identity) error {
			if device(file) != synced {
				return nil
			}
			return d.file(file, fails)
		}))
		return
	}
	d.syncNames(c.Path, false, synced, fails)
}

// syncNames brings the names of a directory to the disk, or of all below it on a device, or loses what has changed of
// them since they were brought there.
func (d *lossy) syncNames(dir string, deep bool, device uint64, fails bool) {
	found, err := d.scan(dir, deep, device)
	d.err = errors.Join(d.err, err)
	covers := func(path string) bool { return deep || filepath.Dir(path) == dir }
	for path, id := range found {
		switch {
		case !fails && d.lost[path] != id:
			d.names[path] = id
		case fails && d.names[path] != id:
			d.lost[path] = id
			d.say(fmt.Sprintf("  lost: the name %s", d.called(path)))
		}
	}
	maps.DeleteFunc(d.names, func(path string, id identity) bool {
		if _, err := os.Lstat(path); !covers(path) || !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		if fails {
			d.kept[path] = true
			d.say(fmt.Sprintf("  lost: that %s (inode %d) is gone", d.called(path), id.number))
		}
		return !d.kept[path]
	})
	d.eachLink(func(path, target string) {
		switch {
		case !covers(path):
		case !fails && d.lostLinks[path] != target:
			d.links[path] = target
		case fails && d.links[path] != target:
			d.lostLinks[path] = target
		}
	})
	maps.DeleteFunc(d.links, func(path, _ string) bool {
		_, err := os.Lstat(path)
		return !fails && covers(path) && errors.Is(err, fs.ErrNotExist)
	})
}

// file keeps what a file has, or takes back what it has not kept.
func (d *lossy) file(f *os.File, fails bool) error {
	id, err := identityOf(f)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return err
	}
	if !fails {
		d.data[id] = b
		return nil
	}
	old := make([]byte, len(b))
	copy(old, d.data[id])
	out, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = out.WriteAt(old, 0)
	return errors.Join(err, out.Close())
}

// end restores the lost names to their earlier files. Where a rename is lost, the file has its name from before again; a removal
// alone is not undone.
func (d *lossy) end() error {
	for _, f := range d.durable {
		d.err = errors.Join(d.err, f.Close())
	}
	clear(d.durable)
	for path, target := range d.lostLinks {
		if now, err := os.Readlink(path); err != nil || now != target {
			continue
		}
		d.err = errors.Join(d.err, os.Remove(path))
		if before, ok := d.links[path]; ok {
			d.err = errors.Join(d.err, os.Symlink(before, path))
		}
	}
	is := map[string][]byte{} // by their paths, what is on the disk; nil: nothing
	for path, id := range d.lost {
		if now, there := at(path); !there || now != id {
			continue // it has been removed since, or made again
		}
		is[path] = nil
		if before, ok := d.names[path]; ok {
			is[path] = append([]byte{}, d.data[before]...)
		}
		for earlier, file := range d.names {
			if _, err := os.Lstat(earlier); file != id || IsTemporary(filepath.Base(earlier)) || !errors.Is(err, fs.ErrNotExist) {
				continue
			}
			data, err := os.ReadFile(path)
			d.err = errors.Join(d.err, err)
			is[earlier] = append([]byte{}, data...)
		}
	}
	for path, data := range is {
		if data == nil {
			d.say(fmt.Sprintf("the power is cut: no %s", d.called(path)))
			d.err = errors.Join(d.err, os.Remove(path))
			continue
		}
		d.say(fmt.Sprintf("the power is cut: %s is an earlier file, of %d bytes", d.called(path), len(data)))
		if err := os.WriteFile(path, data, 0o666); !errors.Is(err, fs.ErrNotExist) { // else its directory is gone
			d.err = errors.Join(d.err, err)
		}
	}
	return d.err
}

// CanSupervise says why levels fault and hostile can't be had here; "" is that they can. It starts a
// program that does nothing.
func CanSupervise(cmd *exec.Cmd) string {
	s, err := syscallfault.Start(cmd, "/", syscallfault.Kinds[:1], func(*syscallfault.Call) {})
	if err == nil {
		ended := cmd.Wait()
		_, err = s.Stop()
		err = errors.Join(ended, err)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
