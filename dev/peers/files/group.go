package files

import (
	"fmt"
	"runtime"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/files"
)

type (
	group = command.Group[job, how]
	arm   = command.Arm[how]
)

// how is how an arm does a job.
type how struct {
	// part divides the lines it appends, so that a slow arm ends: 3 appends a third. Its figures
	// are per line all the same. 0 is all.
	part int
	// ready does what is not in the clock, and returns what is.
	ready func(s *site) (write func() error, err error)
}

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
	all = append(all, appending(z.Quick), durable(z.Quick), replacing(z.Quick))
	counts = []int{1500, 5000}
	if z.Quick {
		counts = []int{100}
	}
	for _, n := range counts {
		all = append(all, gathered(n, false), gathered(n, true))
	}
	return all
}

// gathered is files of a program that makes them one by one, and needs all of them before it goes on.
func gathered(n int, gone bool) *group {
	name, title, note := "batch", "", ""
	if gone {
		name, title = "batch-after-removal", ", after as many were removed"
		note = " Ext4 without a journal passes over the inodes of removed files for some minutes."
	}
	return &group{
		Name:  fmt.Sprintf("%s/%d", name, n),
		Title: fmt.Sprintf("%d new files of 7 KiB, durable with their names%s", n, title),
		Unit:  "file",
		Job:   job{Files: n, Size: 7 << 10, Gone: gone},
		Arms: []*arm{
			{Name: "not durable", Note: "Begin, Write for each, Commit with sync=never", Do: how{ready: now(byBatch(never))}},
			{Name: "not durable (twin)", Note: command.Twin, Do: how{ready: now(byBatch(never))}},
			{Name: "holdfast batch", Note: "the same with sync=group", Do: how{ready: now(byBatch(together))}},
			{Name: "holdfast Add", Note: "os.Create, Write, Add, Close for each; Commit", Do: how{ready: now(byAdd)}},
			{Name: "holdfast WriteAll", Note: "sync=group, replace", Do: how{ready: now(replaceAll)}},
			{Name: "os.WriteFile", Note: "one after the other; not durable", Do: how{ready: now(inTurn(osWrite))}},
			{Name: "one by one", Note: "open, write, fsync, close with package os; then the directory", Do: how{ready: now(thenDir(inTurn(osSync)))}},
			{Name: "renameio", Note: "WriteFile, one after the other; the directory is not synced", Do: how{ready: now(inTurn(renameioWrite))}},
		},
		Notes: []string{"In the clock: from nothing until every file and its name is durable, where the arm does that." + note},
	}
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
		Name:  fmt.Sprintf("create/%d", n),
		Title: fmt.Sprintf("%d new files of 12 bytes in a fresh directory%s", n, often),
		Unit:  "file",
		Job:   job{Files: n, Size: 12, Dirs: dirs},
		Arms: []*arm{
			{Name: "holdfast", Note: "WriteAll", Do: how{ready: now(byPaths(files.Options{Policy: never}))}},
			{Name: "holdfast (twin)", Note: command.Twin, Do: how{ready: now(byPaths(files.Options{Policy: never}))}},
			{Name: "holdfast 1 worker", Note: "WriteAll by one goroutine", Do: how{ready: now(byPaths(files.Options{Policy: never, Workers: 1}))}},
			{Name: "holdfast Write", Note: "a Write for each file, one after the other", Do: how{ready: now(oneByOne(never))}},
			{Name: "C loop", Note: "open, write, close in C, one thread, paths prepared", Do: how{ready: loopInC(false)}},
			{Name: "os.WriteFile", Note: "one after the other", Do: how{ready: now(inTurn(osWrite))}},
			{Name: "pool 2", Note: "2 goroutines that do so, with a channel of paths", Do: how{ready: now(channelled(2, osWrite))}},
			{Name: "pool 64", Note: "64 such goroutines", Do: how{ready: now(channelled(64, osWrite))}},
			{Name: "errgroup CPUs", Note: "os.WriteFile in golang.org/x/sync/errgroup, limited to GOMAXPROCS", Do: how{ready: now(pooled(runtime.GOMAXPROCS(0), osWrite))}},
			{Name: "errgroup 64", Note: "the same, limited to 64", Do: how{ready: now(pooled(64, osWrite))}},
		},
		Notes: []string{"In the clock: from nothing until every file is written and closed; holdfast's files.New and Close too. Not in it: the making of paths and bytes. Nothing is synced.", published},
	}
}

func appending(quick bool) *group {
	j, part := job{Files: 5000, Lines: 1_000_000, Size: 100}, 10
	if quick {
		j, part = job{Files: 500, Lines: 100_000, Size: 100}, 10
	}
	return &group{
		Name:  "append",
		Title: fmt.Sprintf("%d lines of 100 bytes, in turn to %d files, with %d handles", j.Lines, j.Files, j.handles()),
		Unit:  "line",
		Job:   j,
		Arms: []*arm{
			{Name: "holdfast", Note: "Append, buffer=64KiB", Do: how{ready: now(byAppend(buffered))}},
			{Name: "holdfast (twin)", Note: command.Twin, Do: how{ready: now(byAppend(buffered))}},
			{Name: "holdfast unbuffered", Note: "Append, buffer=0; a tenth of the lines", Do: how{part: part, ready: now(byAppend(never))}},
			{Name: "open-append-close", Note: "os.OpenFile, Write, Close for each line; a tenth of the lines", Do: how{part: part, ready: now(openAppendClose)}},
			{Name: "lumberjack", Note: "a Logger for each file, all open at once: a descriptor and a goroutine a file, beyond the handles; its MaxSize is out of reach; the limit of descriptors is raised for it", Do: how{ready: openLoggers}},
		},
		Notes: []string{"In the clock: from nothing until every line is the kernel's and every file is closed. In it for all alike: numbering each line. Nothing is synced.", leftOut},
	}
}

func durable(quick bool) *group {
	n := 1000
	if quick {
		n = 200
	}
	list := []*arm{
		{Name: "holdfast", Note: "WriteAll, sync=group", Do: how{ready: now(byPaths(files.Options{Policy: together}))}},
		{Name: "holdfast (twin)", Note: command.Twin, Do: how{ready: now(byPaths(files.Options{Policy: together}))}},
		{Name: "holdfast each", Note: "WriteAll, sync=each", Do: how{ready: now(byPaths(files.Options{Policy: each}))}},
		{Name: "C loop", Note: "open, write, fsync, close in C, one after the other; then the directory", Do: how{ready: loopInC(true)}},
		{Name: "one by one", Note: "open, write, fsync, close with package os; then the directory", Do: how{ready: now(thenDir(inTurn(osSync)))}},
	}
	for _, width := range []int{2, 64} {
		list = append(list,
			&arm{Name: fmt.Sprintf("pool %d", width), Note: fmt.Sprintf("%d goroutines that do so, with a channel of paths; then the directory", width), Do: how{ready: now(thenDir(channelled(width, osSync)))}},
			&arm{Name: fmt.Sprintf("errgroup %d", width), Note: fmt.Sprintf("the same with errgroup, limited to %d", width), Do: how{ready: now(thenDir(pooled(width, osSync)))}})
	}
	return &group{
		Name:  fmt.Sprintf("durable/%d", n),
		Title: fmt.Sprintf("%d new files of 12 bytes, all of them durable, their names too", n),
		Unit:  "file",
		Job:   job{Files: n, Size: 12},
		Arms:  list,
		Notes: []string{"In the clock: from nothing until every file and the directory is synced.", "Left out: lumberjack and jr_writer, which never sync."},
	}
}

func replacing(quick bool) *group {
	n := 200
	if quick {
		n = 50
	}
	return &group{
		Name:  fmt.Sprintf("replace/%d", n),
		Title: fmt.Sprintf("%d files of 12 bytes replaced durably", n),
		Unit:  "file",
		Job:   job{Files: n, Size: 12, There: true},
		Arms: []*arm{
			{Name: "holdfast", Note: "WriteAll, replace, sync=group", Do: how{ready: now(replaceAll)}},
			{Name: "holdfast (twin)", Note: command.Twin, Do: how{ready: now(replaceAll)}},
			{Name: "holdfast Write", Note: "a Write for each file, replace, sync=each", Do: how{ready: now(replaceEach)}},
			{Name: "renameio", Note: "WriteFile; the directory is not synced", Do: how{ready: now(inTurn(renameioWrite))}},
			{Name: "atomic", Note: "WriteFile; the directory is not synced", Do: how{ready: now(inTurn(atomicWrite))}},
		},
		Notes: []string{"In the clock: from nothing until every new file is under its name and synced. renameio and atomic do not sync the directory: after a crash the old file may be there."},
	}
}
