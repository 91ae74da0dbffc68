//go:build go1.25

// Package crashsuite checks that every writer of this module keeps the same promises. It is for
// tests only.
//
// [Run] checks each promise for one subject, under several policies. An [Opener] opens the subject,
// and reads the records that it has written. Faults come from outside the subject: from a
// [fault.Disk] in a bubble of fake time, if the subject can be opened on one. Each subject also
// writes to the kernel's disk, where its process is killed and the file system is full.
//
// The suite knows the contract of io.Writer, [holdfast.Policy.Loss] and the results of calls. It
// does not know how a subject works. Promises of one subject alone belong in its own tests.
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
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Subject takes records. Its Write has the contract of a [holdfast.Writer]: n bytes are accepted,
// and must not be written again; all of them and nil acknowledge the record under the policy. A
// subject may also have Flush, Sync, WriteString, ReadFrom, Err, and a Writer's offsets: the suite
// checks all of these.
type Subject interface {
	io.Writer
	io.Closer
}

// A Ground is the directory and disk of a subject.
type Ground struct {
	Policy  holdfast.Policy
	Dir     string      // exists; empty, or left by a crash
	Disk    *fault.Disk // the disk of Dir; nil: the kernel's
	OnError func(error) // must get each failure
	flaw    *flaw       // a fault of a File
}

// An Opener describes a subject and its differences from others.
type Opener struct {
	Name string
	// Open opens the subject in a directory.
	Open func(g *Ground) (Subject, error)
	// Read returns the records in files, in order, by paths below the directory. It may return a
	// torn record as it is. See [Lines].
	Read func(t *testing.T, files map[string][]byte) ([][]byte, error)

	// Data is a glob, as in [fault.DiskFault], of the files with records; "" is all.
	Data string
	// Policies reports whether the subject takes a policy; nil: all.
	Policies func(p holdfast.Policy) bool
	// Loss bounds the loss of a crash; nil: Policy.Loss.
	Loss func(p holdfast.Policy) holdfast.Loss
	// Size is a record's number of bytes that count for Loss; nil: its own.
	Size func(record int) int

	FailedSync FailedSync
	// Tries is the number of times that the subject makes a failing call; 0: once.
	Tries int
	// WriteSyncs says that a write may be a sync too: its failure is a failed sync.
	WriteSyncs bool
	// SyncWaits says that Sync only waits for accepted records. So it returns nil if all is
	// durable, also after Close, and leaves it to other calls to return a failure that is over.
	SyncWaits bool
	// Resumes says that Open continues with the files that a crash has left, torn or not.
	Resumes bool
	// OpenSyncs says that the records found by Open are durable with the next durable one.
	OpenSyncs bool
	// AtRisk returns the bytes at risk in an error of OnError; nil: it has none.
	AtRisk func(err error) int64
	// Slow says that no mutex is held during a write or a sync: these may take fake time.
	Slow bool
	// Clean reports whether Read returns whole records only under a policy, even after a power cut;
	// nil: never.
	Clean func(p holdfast.Policy) bool
	// Heals says that a part of a record may remain, as a line of its own.
	Heals bool

	// NoDisk is the reason that the subject can't be opened on a fault.Disk; "" if it can.
	NoDisk string
	// Lacks has the reasons, by promise, that the subject does not keep it.
	Lacks map[string]string
}

// A FailedSync is the set of calls that return a failed sync.
type FailedSync int

const (
	Final  FailedSync = iota // every later call returns an error
	Later                    // every later Sync, and Close; Writes continue in another file
	OfCall                   // the call that made the sync
)

// Run checks all promises of a subject. Each skip has its reason.
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
					if p.disk { // the other tests count the process's goroutines and descriptors
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

// lacks returns the reason that a subject is not checked for a promise, or "".
func (o Opener) lacks(p promise) string {
	if why := o.Lacks[p.name]; why != "" {
		return why
	}
	if p.disk {
		return o.NoDisk
	}
	return ""
}

// name returns a subtest's name without a slash, so that -test.run finds it.
func name(text string) string { return strings.ReplaceAll(text, "/", " or ") }

// A promise is tested by check, which returns the problems.
type promise struct {
	name  string
	disk  bool // takes a fault.Disk
	check func(t *testing.T, o Opener, p holdfast.Policy) []string
}

// The names of the promises, for Opener.Lacks.
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
	{Acknowledged, true, acknowledged},
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

// policies returns policies of each kind, with limits that a short life reaches.
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
	return all
}

// Lines returns the lines of a file, each with its line feed; the last may have none.
func Lines(data []byte) (all [][]byte) {
	for line := range strings.Lines(string(data)) {
		all = append(all, []byte(line))
	}
	return all
}

// EachFile returns the files' contents in the order of their names, without temporary files.
func EachFile(files map[string][]byte) (all [][]byte) {
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasPrefix(path.Base(p), ".holdfast-") {
			all = append(all, files[p])
		}
	}
	return all
}

// OnDisk returns a new disk with files in dir, as a crash left them.
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

// File opens a file on the ground's disk for appending, as a [holdfast.File]. The name of a new
// file is durable at once.
func (g *Ground) File(name string) (holdfast.File, error) {
	_ = g.Disk.WriteFile(path.Join(g.Dir, name), nil, 0o644) // the file may exist
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

// A file implements holdfast.File on a disk.
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
