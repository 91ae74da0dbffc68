//go:build go1.25

// Package crashsuite holds everything of ours that writes to the same promises. It is for tests only.
//
// [Run] runs each promise for one subject, under several policies. An [Opener] says how the subject is
// opened, and how what it has written is read. Faults come from outside of the subject. Where it can be
// opened on a [fault.Disk], they come from that, in a bubble of fake time. Each subject also writes to
// the kernel's disk, where its process is killed and the file system is full.
//
// The suite knows the contract of io.Writer, [holdfast.Policy.Loss] and what calls have returned. It
// does not know how a subject works. What only one subject promises is for its own tests.
package crashsuite

import (
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/policies"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Subject takes records. Its Write has the contract of a [holdfast.Writer]: n bytes are accepted, and
// must not be given again. All of them and nil acknowledge the record as the policy says. A subject may also
// have Flush, Sync, WriteString, ReadFrom, Err, and a Writer's offsets: all of these are held too.
type Subject interface {
	io.Writer
	io.Closer
}

// A Ground is what a subject is opened on.
type Ground struct {
	Policy  holdfast.Policy
	Dir     string      // is there; empty, or what a crash has left
	Disk    *fault.Disk // has Dir; nil: the kernel's
	OnError func(error) // is to hear each failure
	flaw    *flaw       // of a File
}

// An Opener is a subject, and what it differs in.
type Opener struct {
	Name string
	// Open opens the subject in a directory.
	Open func(g *Ground) (Subject, error)
	// Read returns the records that files hold, in their order, by paths below the directory. What is
	// torn it may return as it is. See [Lines].
	Read func(t *testing.T, files map[string][]byte) ([][]byte, error)

	// Data is a glob, as of [fault.DiskFault], of the files that hold records; "" is all.
	Data string
	// Policies tells which policies the subject takes; nil: all.
	Policies func(p holdfast.Policy) bool
	// Loss is what a crash may take; nil: what the policy says.
	Loss func(p holdfast.Policy) holdfast.Loss
	// Size is how many bytes a record takes of what Loss allows; nil: its own.
	Size func(record int) int

	FailedSync FailedSync
	// Tries is how often the subject makes a call that fails; 0: once.
	Tries int
	// WriteSyncs says that a write may be a sync too: if it fails, that is a failed sync.
	WriteSyncs bool
	// SyncWaits says that Sync waits for what is accepted, and does nothing else. So it is nil where
	// all is durable, also after Close, and leaves it to other calls to tell what failed and is over.
	SyncWaits bool
	// Resumes says that Open goes on with what a crash has left, torn or not.
	Resumes bool
	// OpenSyncs says that what Open finds is durable with the next record that is.
	OpenSyncs bool
	// AtRisk is what an error of OnError says of bytes at risk; nil: nothing.
	AtRisk func(err error) int64
	// Slow says that no mutex is held during a write or a sync, which then may take fake time.
	Slow bool
	// Clean tells under which policies Read returns whole records alone, also after a power cut; nil: none.
	Clean func(p holdfast.Policy) bool
	// Heals says that a part of a record may stay, as a line of its own.
	Heals bool

	// NoDisk is why the subject can't be opened on a fault.Disk; "" if it can.
	NoDisk string
	// Lacks is, by the names of promises, why the subject can't be held to them.
	Lacks map[string]string
}

// A FailedSync says how far a failed sync reaches.
type FailedSync int

const (
	Final  FailedSync = iota // every later call returns an error
	Later                    // every later Sync, and Close; a Write goes on elsewhere
	OfCall                   // it is told by the call that made it
)

// Run holds a subject to all promises. Each skip has its reason.
func Run(t *testing.T, o Opener) {
	t.Helper()
	for _, p := range promises {
		t.Run(name(p.name), func(t *testing.T) {
			if why := o.lacks(p); why != "" {
				t.Skip(why)
			}
			for _, policy := range p.policies() {
				if o.Policies != nil && !o.Policies(policy) {
					continue
				}
				t.Run(name(policy.String()), func(t *testing.T) {
					if p.disk { // of what the process has, the others count
						t.Parallel()
					}
					for _, problem := range p.check(t, o, policy) {
						t.Error(problem)
					}
				})
			}
		})
	}
}

// lacks returns why a subject is not held to a promise.
func (o Opener) lacks(p promise) string {
	if why := o.Lacks[p.name]; why != "" {
		return why
	}
	if p.disk {
		return o.NoDisk
	}
	return ""
}

// name makes a subtest's name that -test.run finds again: it has no slash.
func name(text string) string { return strings.ReplaceAll(text, "/", " or ") }

// A promise is held by check, which returns what is wrong, or nothing.
type promise struct {
	name  string
	disk  bool // takes a fault.Disk
	check func(t *testing.T, o Opener, p holdfast.Policy) []string
}

// The names are for Opener.Lacks.
const (
	Acknowledged = "what is acknowledged outlives a crash"
	Killed       = "what is acknowledged outlives kill -9"
	Whole        = "records are whole, in order and not twice"
	Told         = "errors are told by the next call"
	ToldOver     = "errors that are over are told by the next call"
	FinalSync    = "a failed sync is told by every later call"
	Heard        = "OnError hears each failure once"
	Within       = "OnError may call Close"
	Full         = "a full disk is not final"
	FullReal     = "a full file system is not final"
	Leaves       = "nothing is left after any fault"
	LeavesReal   = "no goroutine and no descriptor is left"
	Closed       = "calls after Close are refused"
	Panics       = "a panic of the file is an error of every later call"
)

var promises = []promise{
	{Acknowledged, true, inBubbles(acknowledged)},
	{Killed, false, killed},
	{Whole, true, inBubble(whole)},
	{Told, true, inBubbles(told)},
	{ToldOver, true, inBubbles(toldOver)},
	{FinalSync, true, inBubble(finalSync)},
	{Heard, true, inBubble(heard)},
	{Within, true, inBubble(within)},
	{Full, true, inBubble(full)},
	{FullReal, false, fullReal},
	{Leaves, true, leaves},
	{LeavesReal, false, leavesReal},
	{Closed, true, inBubble(closed)},
	{Panics, true, inBubbles(panics)},
}

// policies are of each kind, and so small that a short life meets every limit.
func (p promise) policies() []holdfast.Policy {
	texts := []string{
		"buffer=0,sync=never",
		"buffer=4KiB,flush=10ms,sync=never",
		"buffer=256B,sync=close",
		"buffer=1KiB,sync=20ms",
		"buffer=256B,flush=5ms,sync=20ms",
		"buffer=0,sync=300B",
		"buffer=1KiB,flush=3ms/100B,sync=10ms/400B",
		"buffer=0,sync=group",
		"buffer=64KiB,sync=group",
		"buffer=256B,sync=each",
	}
	if !p.disk {
		texts = []string{"buffer=0,sync=never", "buffer=1KiB,sync=never", "buffer=64KiB,sync=10ms", "buffer=64KiB,sync=group", "buffer=0,sync=each"}
	}
	if testing.Short() {
		texts = texts[len(texts)-2:]
		if p.disk {
			texts = append(texts, "buffer=1KiB,sync=20ms")
		}
	}
	var all []holdfast.Policy
	for _, text := range texts {
		one, err := holdfast.ParsePolicy(text)
		must(err)
		all = append(all, one)
	}
	if p.name == Acknowledged && !testing.Short() { // of which the choices matter most
		for _, c := range policies.Pairs() {
			if !slices.Contains(all, c.Policy) {
				all = append(all, c.Policy)
			}
		}
	}
	return all
}

// Lines returns the lines of a file, each with its line feed; the last may have none.
func Lines(data []byte) (all [][]byte) {
	for line := range strings.Lines(string(data)) {
		all = append(all, []byte(line))
	}
	return all
}

// EachFile returns the files' contents in the order of their names, but for temporary files.
func EachFile(files map[string][]byte) (all [][]byte) {
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasPrefix(path.Base(p), ".holdfast-") {
			all = append(all, files[p])
		}
	}
	return all
}

// OnDisk returns a new disk on which a crash has left these files in dir.
func OnDisk(dir string, files map[string][]byte) *fault.Disk {
	d := fault.NewDisk()
	must(d.MkdirAll(dir))
	for name, data := range files {
		must(d.MkdirAll(path.Dir(path.Join(dir, name))))
		must(d.WriteFile(path.Join(dir, name), data, 0o644))
	}
	return d
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// File opens a file of the ground's disk to append to it, as a [holdfast.File]. A new one's name is on
// the disk at once.
func (g *Ground) File(name string) (holdfast.File, error) {
	_ = g.Disk.WriteFile(path.Join(g.Dir, name), nil, 0o644) // it may be there
	dir, err := g.Disk.OpenDir(sysName(g.Dir))
	if err != nil {
		return nil, err
	}
	fd, err := g.Disk.OpenFile(dir, sysName(name), os.O_WRONLY|os.O_APPEND, 0)
	if err = errors.Join(err, g.Disk.Close(dir)); err != nil {
		if fd > 0 {
			_ = g.Disk.Close(fd)
		}
		return nil, err
	}
	return &file{g.Disk, fd, g.flaw}, nil
}

func sysName(name string) sys.Name { return sys.Name(name + "\x00") }

// A file makes the calls of a holdfast.File on a disk.
type file struct {
	disk vfs.Disk
	fd   int
	*flaw
}

func (f *file) Write(p []byte) (int, error) {
	f.may(fault.DiskWrite)
	return f.disk.Write(f.fd, p)
}

func (f *file) Sync() error {
	f.may(fault.DiskSync)
	return f.disk.Datasync(f.fd)
}

func (f *file) Close() error {
	err := f.disk.Close(f.fd)
	f.may(fault.DiskClose)
	return err
}

var errPlanned = errors.New("a planned panic")
