package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// Tails looks once at each file that a run appends to, before the run's first line is
// given to it. It is for one goroutine.
type tails struct {
	input fs.FileInfo         // of standard input, if that is a regular file; else nil
	paths map[uint64]bool     // by the hashes of their names; true: the run's last line there was cut
	files map[fileID]struct{} // those that were there when they were looked at
}

// A fileID says which file it is, whatever its names; the zero fileID is not known.
type fileID struct{ device, inode uint64 }

// errIsInput is why a file is not written to: what is read there would never end.
var errIsInput = errors.New("it is standard input too")

// errNotRegular is why no line is given to a pipe, a device or a directory. The library, which opens a file
// only to flush to it, would refuse them later.
var errNotRegular = errors.New("it is no regular file; lines are appended only to regular ones")

// look reports whether a file ends within a line. Of a path that it has looked at it
// says so only if the run itself has cut a line there since.
func (t *tails) look(path string, name uint64) (torn bool, err error) {
	cut, known := t.paths[name]
	if known && !cut {
		return false, nil
	}
	t.paths[name] = false
	if t.isInput(path) {
		return false, errIsInput
	}
	is, id, ok := identify(path)
	const kind, regular = 0o170000, 0o100000
	if ok && is.Mode&kind != regular {
		delete(t.paths, name) // to refuse further lines too
		return false, errNotRegular
	}
	_, seen := t.files[id]
	if !ok || is.Size == 0 || seen && !cut {
		return false, nil // Append makes what is missing
	}
	if id != (fileID{}) {
		t.files[id] = struct{}{}
	}
	return endsTorn(path)
}

// isInput reports whether a path leads to standard input.
func (t *tails) isInput(path string) bool {
	if t.input == nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && os.SameFile(t.input, info)
}

// identify says which file a path leads to.
func identify(path string) (is sys.Stat, id fileID, ok bool) {
	name, err := sys.NewName(path)
	if err != nil {
		return is, id, false
	}
	is, err = sys.Disk{}.StatPath(name)
	return is, fileID{is.Device, is.Inode}, err == nil
}

func endsTorn(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // if it is a pipe by now, it must not wait
	if err != nil {
		return false, unreadable(err)
	}
	defer f.Close() // nothing was written to it
	var last [1]byte
	if _, err := f.Seek(-1, io.SeekEnd); err != nil {
		return false, nil // it is empty by now
	}
	if _, err := io.ReadFull(f, last[:]); err != nil {
		return false, unreadable(err)
	}
	return last[0] != '\n', nil
}

func unreadable(err error) error {
	return fmt.Errorf("its last byte can't be read, so a torn line would not be ended: %w", cli.Cause(err))
}

// healAll ends the torn lines of the files that are about to get more. The line feed is
// in the file before anything else is given to it, by whatever name.
func (s *spread) healAll(piles []*pile) {
	var torn []*pile
	for _, p := range piles {
		isTorn, err := s.tails.look(p.path, s.name(p))
		switch {
		case errors.Is(err, errIsInput):
			s.stopAt(p, err)
		case errors.Is(err, errNotRegular):
			p.err = fmt.Errorf("%s: %w", p.path, err)
		case err != nil:
			s.remark("%s: %v", p.path, err)
		case isTorn:
			torn = append(torn, p)
		}
	}
	s.inParallel(torn, s.heal)
	for _, p := range torn {
		switch {
		case p.err != nil:
			s.tails.paths[s.name(p)] = true
		case !s.halt.Load():
			s.totals.Healed++
			s.remark("%s: its last line was torn, and is ended with a line feed", p.path)
		}
	}
}

// heal ends a torn line.
func (s *spread) heal(p *pile) {
	if s.halt.Load() {
		return
	}
	ctx := context.Background()
	p.err = s.files.Release(ctx, p.path) // an earlier try may have left its line feed in memory
	if isTorn, err := endsTorn(p.path); p.err == nil && err == nil && isTorn {
		if p.err = s.files.Append(ctx, p.path, []byte("\n")); p.err == nil {
			p.err = s.files.Release(ctx, p.path)
		}
	}
	var file *files.Error
	if errors.As(p.err, &file) { // what became of the line feed says nothing of the pile
		untouched := *file
		untouched.Offset, untouched.Outcome = 0, holdfast.OutcomeUntouched
		p.err = &untouched
	}
	if isGeneral(p.err) {
		s.halt.Store(true)
	}
}
