package files

import (
	"context"
	"errors"
	"iter"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// The policies of our arms.
var (
	never    = holdfast.Policy{}
	each     = holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncEach}}
	together = holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncGroup}}
	buffered = holdfast.Buffered(64 * holdfast.KiB)
)

// withFiles does the work with a Set made and closed in the clock.
func withFiles(o files.Options, work func(f *files.Set) error) error {
	f, err := files.New(o)
	if err != nil {
		return err
	}
	return errors.Join(work(f), f.Close())
}

func byPaths(o files.Options) func(s *site) error {
	return func(s *site) error { return writeAll(o, s.whole(files.Create)) }
}

func replaceAll(s *site) error {
	return writeAll(files.Options{Policy: together}, s.whole(files.Replace))
}

func writeAll(o files.Options, all iter.Seq[files.Write]) error {
	return withFiles(o, func(f *files.Set) error {
		_, err := f.WriteAll(context.Background(), all)
		return err
	})
}

// byBatch gives the files one by one to a batch.
func byBatch(p holdfast.Policy) func(s *site) error {
	return func(s *site) error {
		return inBatch(p, func(b *files.Batch) error {
			for i, path := range s.paths {
				if err := b.Write(path, s.content(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// byAdd writes the files by package os, and gives them to a batch.
func byAdd(s *site) error {
	return inBatch(together, func(b *files.Batch) error {
		for i, path := range s.paths {
			f, err := os.Create(path)
			if err != nil {
				return err
			}
			_, err = f.Write(s.content(i))
			if err = errors.Join(err, b.Add(f), f.Close()); err != nil {
				return err
			}
		}
		return nil
	})
}

func inBatch(p holdfast.Policy, give func(b *files.Batch) error) error {
	return withFiles(files.Options{Policy: p}, func(f *files.Set) error {
		b := f.Begin()
		if err := give(b); err != nil {
			return err
		}
		_, err := b.Commit(context.Background())
		return err
	})
}

// whole yields the site's files by their paths.
func (s *site) whole(mode files.Mode) iter.Seq[files.Write] {
	return func(yield func(files.Write) bool) {
		for i, path := range s.paths {
			if !yield(files.Write{Path: path, Data: s.content(i), Mode: mode}) {
				return
			}
		}
	}
}

func oneByOne(p holdfast.Policy) func(s *site) error { return byWrite(p, files.Create) }

func replaceEach(s *site) error { return byWrite(each, files.Replace)(s) }

func byWrite(p holdfast.Policy, mode files.Mode) func(s *site) error {
	return func(s *site) error {
		return withFiles(files.Options{Policy: p}, func(f *files.Set) error {
			for i, path := range s.paths {
				if _, err := f.WriteFile(context.Background(), path, s.content(i), mode); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func byAppend(p holdfast.Policy) func(s *site) error {
	return func(s *site) error {
		o := files.Options{Policy: p, Handles: s.handles()}
		return withFiles(o, func(f *files.Set) error {
			for line := range s.Lines {
				if err := f.Append(context.Background(), s.paths[line%s.Files], s.number(line)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
