package fsync

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

type (
	// tryFunc does about a site's length of work on a file of its own and leaves none.
	tryFunc = func(context.Context, *site) (sample, error)
	group   = command.Group[struct{}, tryFunc]
	arm     = command.Arm[tryFunc]
	// A sample's time covers the operations alone: no opening, preparing or closing.
	sample = command.Sample
)

// A site is where trials take place.
type site struct {
	ground *trial.WorkDir
	length time.Duration // of a trial
}

// The file that pg_test_fsync overwrites, and so do the arms that are compared with it.
const (
	blockBytes = 8 << 10
	fileBytes  = 16 << 20
)

const (
	engineNote = "bench's engine with `buffer=0,sync=each`, one writer"
	bareNote   = "the same engine around write(2) and fdatasync(2) alone"
	dsyncNote  = "bench's engine around write(2) alone"
	loopNote   = "a loop in Go"
)

// differences says where two arms differ by construction, whatever the disk does.
var differences = []string{
	"All clocks run over the operations alone: making, preparing, opening and removing the file are outside. Ours stop after a number of operations that takes about a trial's time, or after that time; fio's after it, in whole milliseconds; pg_test_fsync's after whole seconds, by alarm(2).",
	"`holdfast` makes one system call more than `bare` for each record, fstat(2), which looks whether the file still has a name; its first sync syncs the directory too. Both verify every byte afterwards, the loops the last block.",
	"fio and pg_test_fsync are processes of their own without other threads; Go's runtime hands a processor to others while a system call blocks, and takes one back after it, which is some µs of each operation of ours (the same loop by raw system calls, which keep the processor, does not pay that).",
	"fio keeps its books and reads the clock between two operations (*rest*). What it calls clat is the write alone (*write*): the sync is in another section of its output (*sync*).",
	"A file that grows has its new size in each sync; on a file system with a journal that is a commit. A file that is overwritten where it is allocated has only its bytes, so figures of *grow* and *overwrite* are no substitutes for each other.",
	"With O_DSYNC the sync is inside of write(2), and no latency of its own. With O_DIRECT besides nothing goes through the page cache.",
}

// groups returns all that is compared with the installed tools.
func groups(tools []tool) []*group {
	var all []*group
	for _, size := range []int{blockBytes, 2300, 128} {
		all = append(all, growing(size, tools))
	}
	all = append(all, overwriting(tools))
	if runtime.GOOS == "linux" {
		all = append(all, growingDsync(tools), overwritingDsync(tools), overwritingDirect(tools))
	}
	for _, g := range all {
		g.Unit, g.Notes = "operation", differences
		g.Arms = slices.DeleteFunc(g.Arms, func(a *arm) bool { return a == nil }) // of tools that are not there
	}
	return all
}

func growing(size int, tools []tool) *group {
	ours := func() tryFunc { return (&engine{size: size}).try }
	return &group{
		Name:  fmt.Sprintf("grow-%d", size),
		Title: fmt.Sprintf("write and fdatasync of %d bytes, the file grows: its size is made durable each time", size),
		Arms: []*arm{
			{Name: "holdfast", Note: engineNote, Do: ours()},
			{Name: "holdfast (twin)", Note: command.Twin, Do: ours()},
			{Name: "bare", Note: bareNote, Do: (&engine{size: size, open: openBare(0, true)}).try},
			fioArm(tools, fioGrowing(size, "--fdatasync=1")),
		},
	}
}

func overwriting(tools []tool) *group {
	l := loop{sync: true}
	return &group{
		Name:  "overwrite",
		Title: "write and fdatasync of 8192 bytes at the same place of a 16 MiB file that is allocated and synced before: no size changes",
		Arms: []*arm{
			{Name: "loop", Note: loopNote, Do: l.try},
			{Name: "loop (twin)", Note: command.Twin, Do: l.try},
			fioArm(tools, fioOverwriting("--fdatasync=1")),
			pgArm(tools, "fdatasync"),
		},
	}
}

func growingDsync(tools []tool) *group {
	ours := func() tryFunc { return (&engine{size: blockBytes, open: openBare(oDsync, false)}).try }
	return &group{
		Name:  "dsync-grow",
		Title: "write of 8192 bytes with O_DSYNC, the file grows",
		Arms: []*arm{
			{Name: "bare", Note: dsyncNote, Do: ours()},
			{Name: "bare (twin)", Note: command.Twin, Do: ours()},
			fioArm(tools, fioGrowing(blockBytes, "--sync=dsync")),
		},
	}
}

func overwritingDsync(tools []tool) *group {
	l := loop{flags: oDsync}
	return &group{
		Name:  "dsync-overwrite",
		Title: "write of 8192 bytes with O_DSYNC at the same place of a 16 MiB file",
		Arms: []*arm{
			{Name: "loop", Note: loopNote, Do: l.try},
			{Name: "loop (twin)", Note: command.Twin, Do: l.try},
			fioArm(tools, fioOverwriting("--sync=dsync")),
		},
	}
}

func overwritingDirect(tools []tool) *group {
	l := loop{flags: oDsync | oDirect}
	return &group{
		Name:  "dsync-direct-overwrite",
		Title: "write of 8192 bytes with O_DSYNC and O_DIRECT at the same place of a 16 MiB file, as pg_test_fsync's open_datasync does",
		Arms: []*arm{
			{Name: "loop", Note: loopNote, Do: l.try},
			{Name: "loop (twin)", Note: command.Twin, Do: l.try},
			fioArm(tools, fioOverwriting("--sync=dsync", "--direct=1")),
			pgArm(tools, "open_datasync"),
		},
	}
}
