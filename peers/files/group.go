package main

import (
	"fmt"
	"regexp"
	"runtime"

	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/peers/internal/command"
)

// A group is one kind of work, with its arms.
type group struct {
	name  string
	title string
	clock string // what is in it
	job   job
	arms  []*arm // the first is ours, which the others are compared with; the second is its twin
	notes []string
}

// An arm is a library or program that does a group's work.
type arm struct {
	name string
	note string
	// part is what share of the lines it appends, so that a slow arm ends: a third
	// is 3. Its figures are those of a line all the same. 0 is all.
	part int
	// ready does what is not in the clock, and returns what is.
	ready func(s *site) (write func() error, err error)
	command.Runs[command.Sample]
}

// Entrants returns the arms.
func (g *group) Entrants() []*arm { return g.arms }

// now is for an arm that has nothing to make ready.
func now(write func(s *site) error) func(s *site) (func() error, error) {
	return func(s *site) (func() error, error) {
		return func() error { return write(s) }, nil
	}
}

// sizes is how much is done.
type sizes struct{ Quick, Full bool }

// groups is all that is timed.
func groups(z sizes) (all []*group) {
	counts := []int{2, 25, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1500, 3000, 5000}
	if z.Quick {
		counts = []int{2, 100, 500}
	}
	if z.Full {
		counts = append(counts, 50_000)
	}
	for _, n := range counts {
		all = append(all, creating(n, z.Quick))
	}
	return append(all, appending(z.Quick), durable(z.Quick), replacing(z.Quick))
}

const leftOut = "Left out: github.com/JuniorVieira99/jr_writer, whose module the public module proxy did not serve when this was written."

const published = leftOut + " Its documents tell 12.5 µs, 4.6 KiB and 9 allocations a file for 1000 files on 64 cores; there the files are made and opened before the clock starts, and closed after it has stopped."

// atLeast is how many files a sample is made of. One directory with 2 files would show the
// clock more than the files.
const atLeast = 500

func creating(n int, quick bool) *group {
	dirs, often := max(1, atLeast/n), ""
	if quick {
		dirs = 1
	}
	if dirs > 1 {
		often = fmt.Sprintf(", %d times a sample", dirs)
	}

	return &group{
		name:  fmt.Sprintf("create/%d", n),
		title: fmt.Sprintf("%d new files of 12 bytes in a fresh directory%s", n, often),
		clock: "From nothing until every file is written and closed; holdfast's files.New and Close too. Not in it: the making of paths and bytes. Nothing is synced.",
		job:   job{Files: n, Size: 12, Dirs: dirs},
		arms: []*arm{
			{name: "holdfast", note: "WriteAll", ready: now(byPaths(files.Options{Policy: never}))},
			{name: "holdfast (twin)", note: command.Twin, ready: now(byPaths(files.Options{Policy: never}))},
			{name: "holdfast 1 worker", note: "WriteAll by one goroutine", ready: now(byPaths(files.Options{Policy: never, Workers: 1}))},
			{name: "holdfast Write", note: "a Write for each file, one after the other", ready: now(oneByOne(never))},
			{name: "C loop", note: "open, write, close in C, one thread, paths prepared", ready: loopInC(false)},
			{name: "os.WriteFile", note: "one after the other", ready: now(inTurn(osWrite))},
			{name: "errgroup CPUs", note: "os.WriteFile in golang.org/x/sync/errgroup, limited to GOMAXPROCS", ready: now(pooled(runtime.GOMAXPROCS(0), osWrite))},
			{name: "errgroup 64", note: "the same, limited to 64", ready: now(pooled(64, osWrite))},
		},
		notes: []string{published},
	}
}

func appending(quick bool) *group {
	j, part := job{Files: 5000, Lines: 1_000_000, Size: 100}, 10
	if quick {
		j, part = job{Files: 500, Lines: 100_000, Size: 100}, 10
	}
	return &group{
		name:  "append",
		title: fmt.Sprintf("%d lines of 100 bytes, in turn to %d files, with %d handles", j.Lines, j.Files, j.handles()),
		clock: "From nothing until every line is the kernel's and every file is closed. In it for all alike: numbering each line. Nothing is synced.",
		job:   j,
		arms: []*arm{
			{name: "holdfast", note: "Append, buffer=64KiB", ready: now(byAppend(buffered))},
			{name: "holdfast (twin)", note: command.Twin, ready: now(byAppend(buffered))},
			{name: "holdfast unbuffered", note: "Append, buffer=0; a tenth of the lines", part: part, ready: now(byAppend(never))},
			{name: "open-append-close", note: "os.OpenFile, Write, Close for each line; a tenth of the lines", part: part, ready: now(openAppendClose)},
			{name: "lumberjack", note: "a Logger for each file, all open at once: a descriptor and a goroutine a file, beyond the handles; its MaxSize is out of reach; the limit of descriptors is raised for it", ready: openLoggers},
		},
		notes: []string{leftOut},
	}
}

func durable(quick bool) *group {
	n := 1000
	if quick {
		n = 200
	}
	list := []*arm{
		{name: "holdfast", note: "WriteAll, sync=group", ready: now(byPaths(files.Options{Policy: together}))},
		{name: "holdfast (twin)", note: command.Twin, ready: now(byPaths(files.Options{Policy: together}))},
		{name: "holdfast each", note: "WriteAll, sync=each", ready: now(byPaths(files.Options{Policy: each}))},
		{name: "C loop", note: "open, write, fsync, close in C, one after the other; then the directory", ready: loopInC(true)},
		{name: "one by one", note: "open, write, fsync, close with package os; then the directory", ready: now(thenDir(inTurn(osSync)))},
	}
	for _, width := range []int{2, 64} {
		list = append(list,
			&arm{name: fmt.Sprintf("pool %d", width), note: fmt.Sprintf("%d goroutines that do so, with a channel of paths; then the directory", width), ready: now(thenDir(channelled(width, osSync)))},
			&arm{name: fmt.Sprintf("errgroup %d", width), note: fmt.Sprintf("the same with errgroup, limited to %d", width), ready: now(thenDir(pooled(width, osSync)))})
	}
	return &group{
		name:  fmt.Sprintf("durable/%d", n),
		title: fmt.Sprintf("%d new files of 12 bytes, all of them durable, their names too", n),
		clock: "From nothing until every file and the directory is synced.",
		job:   job{Files: n, Size: 12},
		arms:  list,
		notes: []string{"Left out: lumberjack and jr_writer, which never sync."},
	}
}

func replacing(quick bool) *group {
	n := 200
	if quick {
		n = 50
	}
	return &group{
		name:  fmt.Sprintf("replace/%d", n),
		title: fmt.Sprintf("%d files of 12 bytes replaced durably", n),
		clock: "From nothing until every new file is under its name and synced. renameio and atomic do not sync the directory: after a crash the old file may be there.",
		job:   job{Files: n, Size: 12, There: true},
		arms: []*arm{
			{name: "holdfast", note: "WriteAll, replace, sync=group", ready: now(replaceAll)},
			{name: "holdfast (twin)", note: command.Twin, ready: now(replaceAll)},
			{name: "holdfast Write", note: "a Write for each file, replace, sync=each", ready: now(replaceEach)},
			{name: "renameio", note: "WriteFile; the directory is not synced", ready: now(inTurn(renameioWrite))},
			{name: "atomic", note: "WriteFile; the directory is not synced", ready: now(inTurn(atomicWrite))},
		},
	}
}

// picked keeps the arms with matching names, and the arms that they are compared with.
func picked(all []*group, pick *regexp.Regexp) (kept []*group) {
	for _, g := range all {
		some, any := command.Picked(g.arms, func(a *arm) bool { return pick.MatchString(g.name + "/" + a.name) })
		if g.arms = some; any {
			kept = append(kept, g)
		}
	}
	return kept
}
