package main

import (
	"context"
	"errors"
	"iter"

	"github.com/holdfast-go/holdfast"
)

// The policies of our arms.
var (
	never    = holdfast.Policy{}
	each     = holdfast.Policy{Sync: holdfast.SyncEach}
	together = holdfast.Policy{Sync: holdfast.SyncGroup}
	buffered = holdfast.Buffered(64 * holdfast.KiB)
)

// withFiles does the work with a Files made and closed in the clock.
func withFiles(o holdfast.FilesOptions, work func(f *holdfast.Files) error) error {
	f, err := holdfast.NewFiles(o)
	if err != nil {
		return err
	}
	return errors.Join(work(f), f.Close())
}

func byNames(p holdfast.Policy) func(s *site) error {
	return func(s *site) error {
		return writeAll(p, func(yield func(holdfast.FileWrite) bool) {
			for i, name := range s.names {
				if !yield(holdfast.FileWrite{Name: name, Data: s.content(i)}) {
					return
				}
			}
		})
	}
}

func byPaths(p holdfast.Policy) func(s *site) error {
	return func(s *site) error {
		return writeAll(p, s.whole(holdfast.ModeCreate))
	}
}

func replaceAll(s *site) error { return writeAll(together, s.whole(holdfast.ModeReplace)) }

func writeAll(p holdfast.Policy, files iter.Seq[holdfast.FileWrite]) error {
	return withFiles(holdfast.FilesOptions{Policy: p}, func(f *holdfast.Files) error {
		_, err := f.WriteAll(context.Background(), files)
		return err
	})
}

// whole yields the site's files by their paths.
func (s *site) whole(mode holdfast.Mode) iter.Seq[holdfast.FileWrite] {
	return func(yield func(holdfast.FileWrite) bool) {
		for i, path := range s.paths {
			if !yield(holdfast.FileWrite{Path: path, Data: s.content(i), Mode: mode}) {
				return
			}
		}
	}
}

func oneByOne(p holdfast.Policy) func(s *site) error { return byWrite(p, holdfast.ModeCreate) }

func replaceEach(s *site) error { return byWrite(each, holdfast.ModeReplace)(s) }

func byWrite(p holdfast.Policy, mode holdfast.Mode) func(s *site) error {
	return func(s *site) error {
		return withFiles(holdfast.FilesOptions{Policy: p}, func(f *holdfast.Files) error {
			for i, path := range s.paths {
				if _, err := f.Write(context.Background(), path, s.content(i), mode); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func byAppend(p holdfast.Policy) func(s *site) error {
	return func(s *site) error {
		o := holdfast.FilesOptions{Policy: p, Handles: s.handles()}
		return withFiles(o, func(f *holdfast.Files) error {
			for line := range s.Lines {
				if err := f.Append(context.Background(), s.paths[line%s.Files], s.number(line)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
