package manyfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// Arms whose files are durable with their names when they end, by each policy; and
// files that take the place of others.

const (
	groupDurable = "durable files"
	groupReplace = "replaced files"

	notSynced     = "new, Files, sync=never"
	syncedEach    = "new, os.File, fsync each"
	syncedPool    = "new, os.File, fsync each, 64 workers"
	filesEach     = "new, Files, sync=each"
	filesGroup    = "new, Files, sync=group"
	replacedEach  = "replaced, os.Rename, fsync each"
	replacedOurs  = "replaced, Files.Write, sync=each"
	replacedBatch = "replaced, Files.WriteAll, sync=group"
)

// oldMessage is the old content of a file that is replaced.
const oldMessage = "what stood here before\n"

// A durableWay is a fileWay on a file system that has nothing left to write. Else
// the first sync would pay for the files of the arms before it.
type durableWay struct {
	fileWay
	replace bool // there is an old file of each name
}

// durableArms sync new files, and then files that replace others.
func durableArms(n int) []study.Arm {
	batch := filesSynced(holdfast.SyncGroup, holdfast.OutcomeDurable)
	batch.mode = files.Replace
	return append(armsOfDurable(groupDurable, n,
		durableWay{fileWay: fileWay{notSynced, "Files.WriteAll; nothing is synced", filesSynced(holdfast.SyncNever, holdfast.OutcomeWritten).make}},
		durableWay{fileWay: fileWay{syncedEach, "create, write, fsync and close one after the other, the directory last", syncEach(1)}},
		durableWay{fileWay: fileWay{syncedPool, "the same by 64 workers", syncEach(64)}},
		durableWay{fileWay: fileWay{filesEach, "Files.WriteAll, every file by itself", filesSynced(holdfast.SyncEach, holdfast.OutcomeDurable).make}},
		durableWay{fileWay: fileWay{filesGroup, "Files.WriteAll, all files in one step", filesSynced(holdfast.SyncGroup, holdfast.OutcomeDurable).make}},
	), armsOfDurable(groupReplace, n,
		durableWay{fileWay{replacedEach, "a temporary file, fsync, rename, fsync of the directory, one after the other", replaceEach}, true},
		durableWay{fileWay{replacedOurs, "Files.Write with ModeReplace, one after the other", replaceByFiles}, true},
		durableWay{fileWay{replacedBatch, "Files.WriteAll with ModeReplace, all files in one step", batch.make}, true},
	)...)
}

func armsOfDurable(group string, n int, ways ...durableWay) (arms []study.Arm) {
	for _, w := range ways {
		a := w.named(w.name, group, n, 1)
		a.Time = madeTime(n, 250*time.Microsecond) + 30*time.Millisecond
		a.Task = func() trial.Task { return w.task(n) }
		if w.replace {
			a.Bytes, a.Files = 2*a.Bytes, 2*a.Files
		}
		arms = append(arms, a)
	}
	return arms
}

func (w durableWay) task(n int) trial.Task {
	task := w.fileWay.task(n, 1)
	makeBatch := task.Make
	task.Make = func(path string) error {
		err := makeBatch(path)
		if err == nil && w.replace {
			err = makeOld(path, n)
		}
		return errors.Join(err, writeBack(path))
	}
	if check := task.Check; w.replace {
		task.Check = func(path string) error { return errors.Join(check(path), holdOld(path, n)) }
	}
	return task
}

// makeOld makes the files that are to be replaced. Each has a second name in another
// directory, because it would be removed otherwise. See [trial.Task] for the effect of a removal on
// the files made next.
func makeOld(path string, n int) error {
	second := filepath.Join(path, "old")
	err := os.Mkdir(second, 0o777)
	for i := 0; i < n && err == nil; i++ {
		name := filepath.Join(path, "0", strconv.Itoa(i))
		err = os.WriteFile(name, []byte(oldMessage), 0o666)
		if err == nil {
			err = os.Link(name, filepath.Join(second, strconv.Itoa(i)))
		}
	}
	return err
}

// holdOld checks that the files which were replaced are as they were: no write
// went into them.
func holdOld(path string, n int) error {
	for i := range n {
		got, err := os.ReadFile(filepath.Join(path, "old", strconv.Itoa(i)))
		if err != nil {
			return err
		}
		if string(got) != oldMessage {
			return &trial.ContentError{Reason: fmt.Sprintf("the file that number %d replaced holds %q", i, got)}
		}
	}
	return nil
}

// writeBack makes everything on the file system durable, where it can be asked for
// that; elsewhere the directory.
func writeBack(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	var disk sys.Disk
	if fd := int(d.Fd()); vfs.SyncsAll(disk, fd) {
		err = vfs.SyncAll(disk, fd)
	} else {
		err = syncNames(d)
	}
	return errors.Join(err, d.Close())
}

// syncNames makes the names of a directory durable where that takes a call.
func syncNames(dir *os.File) error {
	if err := sys.SyncDir(dir); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

func filesSynced(s holdfast.SyncMode, o holdfast.Outcome) writeAll {
	return writeAll{options: files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: s}}}, outcome: o}
}

// syncEach makes each file durable by itself, and the names of all at the end.
func syncEach(workers int) func(context.Context, *trial.Clock, batch) error {
	return func(ctx context.Context, c *trial.Clock, b batch) error {
		err := inPool(ctx, len(b.paths), workers, func(i int) error { return makeSynced(b.paths[i]) })
		err = errors.Join(err, syncDir(b.dir))
		c.Lap(trial.Write)
		return err
	}
}

func makeSynced(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(message)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncNames(d), d.Close())
}

func replaceEach(ctx context.Context, c *trial.Clock, b batch) error {
	defer c.Lap(trial.Write)
	for _, path := range b.paths {
		temporary := path + ".new"
		if err := errors.Join(ctx.Err(), makeSynced(temporary)); err != nil {
			return err
		}
		if err := errors.Join(os.Rename(temporary, path), syncDir(b.dir)); err != nil {
			return err
		}
	}
	return nil
}

func replaceByFiles(ctx context.Context, c *trial.Clock, b batch) error {
	f, err := files.New(files.Options{Policy: holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}})
	if err != nil {
		return err
	}
	data := []byte(message)
	for i := 0; i < len(b.paths) && err == nil; i++ {
		_, err = f.WriteFile(ctx, b.paths[i], data, files.Replace)
	}
	err = errors.Join(err, f.Close())
	c.Lap(trial.Write)
	return err
}
