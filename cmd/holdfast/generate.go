package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/filler"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// genChunk is how much is made and written at once: it stays in a processor's
// second cache from the one to the other.
const genChunk = 256 << 10

// make makes the file without its name, which it gets when it is whole. On an error there
// is what was there before.
func (g *generation) make(ctx context.Context, show *meter) error {
	path, old, err := g.place()
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := g.checkRoom(folder); err != nil {
		return err
	}
	f, err := createFor(path)
	if err != nil {
		return &refusal{exitCannot, fmt.Errorf("gen %s: %w", g.file, cause(err)), "give a folder that you may write to"}
	}
	done, op, err := g.write(ctx, f.File, old, show)
	if err == nil {
		op, err = "rename", f.publish(g.force, g.durable())
	}
	if err != nil {
		f.discard()
		return g.refusal(err, done, op, g.left())
	}
	if g.durable() {
		if err := syncFolder(folder); err != nil {
			return g.refusal(err, done, "sync of the folder", "the file is whole, but a power cut may take it")
		}
	}
	return nil
}

// left says what a failure has left.
func (g *generation) left() string {
	if g.force {
		return "what was there before is as it was"
	}
	return "nothing of it is left"
}

// place looks at where the file is to be: its path, where symbolic links lead with
// --force, and the file that is there, or nil.
func (g *generation) place() (path string, old fs.FileInfo, err error) {
	if g.file == "" {
		return "", nil, misuse("for instance: holdfast gen source 100MB", "the name of the file is empty")
	}
	path, err = sys.Disk{}.Resolve(g.file)
	if err != nil {
		return "", nil, misuse("give another name", "gen %s: %w", g.file, err)
	}
	old, err = os.Lstat(path)
	switch {
	case os.IsPathSeparator(g.file[len(g.file)-1]) || err == nil && old.IsDir():
		return "", nil, misuse("end it with a file's name", "%s is a folder", g.file)
	case errors.Is(err, fs.ErrNotExist):
		return path, nil, g.checkNew(path)
	case err != nil:
		return "", nil, misuse("give another name", "gen %s: %w", g.file, cause(err))
	case !old.Mode().IsRegular():
		return "", nil, misuse(fmt.Sprintf("standard output may be one: holdfast gen - %s > %s", g.sizeText, g.file), "%s is no file, but a device, pipe or socket", g.file)
	case !g.force:
		return "", nil, misuse("--force replaces it", "%s is there already", g.file)
	}
	return path, old, nil
}

// checkNew refuses what can't be made at a path where nothing is.
func (g *generation) checkNew(path string) error {
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return misuse("make it first, with mkdir -p", "gen %s: there is no folder %s", g.file, folder)
	}
	if path != g.file && !g.force {
		return misuse("--force makes the file that it leads to", "%s is a symbolic link to nothing", g.file)
	}
	return nil
}

// checkRoom refuses what the file system has no room for now.
func (g *generation) checkRoom(folder string) error {
	if g.kind == genSparse {
		return nil
	}
	free, err := sys.FreeSpace(folder)
	if err != nil || int64(g.size) <= free {
		return nil // what is not known is told when it fails
	}
	hint := "free some space, give a folder on another disk, or --kind sparse, which takes no room"
	if g.force {
		hint += "; an old file is kept until the new one is whole"
	}
	return &refusal{exitCannot, fmt.Errorf("gen %s: it takes %s, and %s has %s free", g.file, bytesText(int64(g.size)), folder, bytesText(free)), hint}
}

// write fills and closes the file. An error comes with how far it got and with the
// call that failed.
func (g *generation) write(ctx context.Context, f *os.File, old fs.FileInfo, show *meter) (done int64, op string, err error) {
	w, err := holdfast.New(f, g.policy)
	if err != nil {
		f.Close()
		return 0, "open", err
	}
	if done, op, err = g.writeTo(ctx, w, f, old, show); err == nil {
		if err = w.Close(); err == nil {
			err = ctx.Err()
		}
		return done, "close", err
	}
	// Nobody waits until bytes are on the disk that are to be removed.
	_ = f.Truncate(0)
	_ = w.Close()
	return done, op, err
}

func (g *generation) writeTo(ctx context.Context, w *holdfast.Writer, f *os.File, old fs.FileInfo, show *meter) (done int64, op string, err error) {
	if old != nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return 0, "chmod", err
		}
	}
	if g.kind == genSparse {
		if err := f.Truncate(int64(g.size)); err != nil {
			return 0, "truncate", err
		}
	} else if done, err = g.fill(ctx, w, show); err != nil {
		return done, "write", err
	}
	if done == 0 && g.durable() {
		return 0, "sync", f.Sync() // a Writer that was given nothing has nothing to sync
	}
	return done, "", nil
}

// fill writes the bytes, chunk by chunk, and returns how many were written.
func (g *generation) fill(ctx context.Context, w io.Writer, show *meter) (done int64, err error) {
	bytes := filler.New(fillers[g.kind], g.seed)
	chunk := make([]byte, min(genChunk, int64(g.size)))
	for left := int64(g.size); left > 0; left -= int64(len(chunk)) {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		chunk = chunk[:min(left, int64(len(chunk)))]
		_, _ = bytes.ReadAt(chunk, done) // the offset is not negative
		n, err := w.Write(chunk)
		done += int64(n)
		if err != nil {
			return done, err
		}
		show.set(done)
	}
	return done, nil
}

// syncFolder makes a folder's names durable where the system can.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := sys.SyncDir(d); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// refusal gives an error that came after so many bytes its exit code and its hint.
func (g *generation) refusal(err error, done int64, op, left string) error {
	if errors.Is(err, context.Canceled) {
		return &refusal{exitInterrupted, fmt.Errorf("interrupted after %s of %s", bytesText(done), bytesText(int64(g.size))), left}
	}
	at := ""
	if op == "write" {
		at = fmt.Sprintf(" at byte %d", done)
	}
	hint := diskHint(err)
	if errors.Is(err, fs.ErrExist) {
		hint = "somebody else has made it meanwhile; --force replaces it"
	}
	if hint != "" && left != "" {
		left += "; "
	}
	return &refusal{exitNotMet, fmt.Errorf("gen %s: %s%s: %w", g.file, op, at, cause(err)), left + hint}
}

// diskHint says what to do about an error of the disk, if that is known.
func diskHint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space, or use another disk"
	case errors.Is(err, syscall.EFBIG):
		return "the file system, or ulimit -f, allows no file as large as that"
	case errors.Is(err, syscall.EIO):
		return "the disk failed: the kernel's log (dmesg) says why"
	case errors.Is(err, syscall.EROFS):
		return "the file system is mounted read-only"
	}
	return ""
}
