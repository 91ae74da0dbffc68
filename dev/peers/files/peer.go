package files

import (
	"context"
	"errors"
	"iter"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/holdfast-go/holdfast/files"
)

// A writer makes or truncates files, and returns every error that the library returns.
type writer struct {
	write func(ctx context.Context, items iter.Seq[item]) []error
	close func() error
}

// stateless is for libraries that have nothing to open or close.
func stateless(write func(ctx context.Context, items iter.Seq[item]) []error) func() (writer, error) {
	return func() (writer, error) {
		return writer{write, func() error { return nil }}, nil
	}
}

// A peer is a library that is run under faults.
type peer struct {
	name string
	note string
	// in are the faults that it meets; nil is all of them.
	in []string
	// cancels says that its write heeds the context, and appends that it adds to a
	// file and can't write it anew.
	cancels, appends bool
	open             func() (writer, error)
	// keep opens a handle for each file that stays open; nil where there is no such
	// thing. The function it returns writes the first line through the handles, then the
	// items as whole files, then the last line through the handles.
	keep func(items []item) (func(first, last []byte) []error, error)
}

func peers() []*peer {
	once := files.Options{Retry: files.Retry{Attempts: 1}}
	return []*peer{
		{name: "holdfast", note: "WriteAll, truncate; Append for handles", cancels: true, open: truncateAll(files.Options{}), keep: keepFiles},
		{name: "holdfast no retries", note: "the same with Retry.Attempts 1", in: []string{"full"}, cancels: true, open: truncateAll(once), keep: keepFiles},
		{name: "holdfast Append", note: "Append for each file, then Close", in: []string{"descriptors", "denied", "full"}, open: stateless(appendAll)},
		{name: "os.WriteFile", note: "one after the other; the context is asked before each, and handles are package os's", cancels: true, open: stateless(oneAfterAnother(osWrite)), keep: keepOS},
		{name: "errgroup 64", note: "os.WriteFile, limited to 64, a context of the group", cancels: true, open: stateless(groupOf(64))},
		{name: "errgroup", note: "os.WriteFile, no limit, every error kept", open: stateless(unlimited)},
		{name: "renameio", note: "WriteFile, one after the other", cancels: true, open: stateless(oneAfterAnother(renameioWrite))},
		{name: "atomic", note: "WriteFile, one after the other", cancels: true, open: stateless(oneAfterAnother(atomicWrite))},
		{name: "lumberjack", note: "a Logger for each file; whole files by os.WriteFile", appends: true, open: stateless(loggers), keep: keepLoggers},
	}
}

// truncateAll writes all of a batch with WriteAll, and every batch with one Set.
func truncateAll(o files.Options) func() (writer, error) {
	return func() (writer, error) {
		f, err := files.New(o)
		if err != nil {
			return writer{}, err
		}
		write := func(ctx context.Context, items iter.Seq[item]) []error {
			return toldBy(f.WriteAll(ctx, writesOf(items)))
		}
		return writer{write, f.Close}, nil
	}
}

func writesOf(items iter.Seq[item]) iter.Seq[files.Write] {
	return func(yield func(files.Write) bool) {
		for it := range items {
			if !yield(files.Write{Path: it.path, Data: it.data, Mode: files.Truncate}) {
				return
			}
		}
	}
}

// toldBy returns the errors of the files, or the one of the call where no file has
// one.
func toldBy(results *files.Results, err error) (errs []error) {
	if results != nil {
		for _, r := range results.All() {
			if r.Err != nil {
				errs = append(errs, r.Err)
			}
		}
	}
	if len(errs) == 0 && err != nil {
		errs = append(errs, err)
	}
	return errs
}

func appendAll(ctx context.Context, items iter.Seq[item]) (errs []error) {
	f, err := files.New(files.Options{Policy: buffered})
	if err != nil {
		return []error{err}
	}
	for it := range items {
		if err := f.Append(ctx, it.path, it.data); err != nil {
			errs = append(errs, err)
		}
	}
	teller(&errs)(f.Close())
	return errs
}

func keepFiles(items []item) (func(first, last []byte) []error, error) {
	f, err := files.New(files.Options{})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	return func(first, last []byte) (errs []error) {
		tell := teller(&errs)
		for _, it := range items {
			tell(f.Append(ctx, it.path, first))
		}
		_, err := f.WriteAll(ctx, writesOf(inOrder(items)))
		tell(err)
		for _, it := range items {
			tell(f.Append(ctx, it.path, last))
		}
		tell(f.Close())
		return errs
	}, nil
}

// teller counts each of the joined errors.
func teller(errs *[]error) func(error) {
	return func(err error) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				teller(errs)(e)
			}
		} else if err != nil {
			*errs = append(*errs, err)
		}
	}
}

func oneAfterAnother(write writeFile) func(context.Context, iter.Seq[item]) []error {
	return func(ctx context.Context, items iter.Seq[item]) (errs []error) {
		for it := range items {
			if err := ctx.Err(); err != nil {
				return append(errs, err)
			}
			teller(&errs)(write(it.path, it.data))
		}
		return errs
	}
}

// groupOf is the example of errgroup's documents: it returns the first error alone, which ends the rest.
func groupOf(width int) func(context.Context, iter.Seq[item]) []error {
	return func(ctx context.Context, items iter.Seq[item]) (errs []error) {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(width)
		for it := range items {
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return os.WriteFile(it.path, it.data, 0o666)
			})
		}
		teller(&errs)(g.Wait())
		return errs
	}
}

func unlimited(_ context.Context, items iter.Seq[item]) (errs []error) {
	var g errgroup.Group
	var mu sync.Mutex
	for it := range items {
		g.Go(func() error {
			err := os.WriteFile(it.path, it.data, 0o666)
			mu.Lock()
			defer mu.Unlock()
			teller(&errs)(err)
			return nil
		})
	}
	teller(&errs)(g.Wait())
	return errs
}

// keepOS keeps files as os.Create opens them.
func keepOS(items []item) (func(first, last []byte) []error, error) {
	return func(first, last []byte) (errs []error) {
		tell := teller(&errs)
		files := make([]*os.File, len(items))
		for i, it := range items {
			f, err := os.Create(it.path)
			if err != nil {
				return append(errs, err)
			}
			defer f.Close()
			files[i] = f
			_, err = f.Write(first)
			tell(err)
			tell(os.WriteFile(it.path, it.data, 0o666))
			_, err = f.Write(last)
			tell(err)
		}
		return errs
	}, nil
}

func loggers(_ context.Context, items iter.Seq[item]) (errs []error) {
	tell := teller(&errs)
	open := map[string]*lumberjack.Logger{}
	for it := range items {
		if open[it.path] == nil {
			open[it.path] = newLogger(it.path)
		}
		_, err := open[it.path].Write(it.data)
		tell(err)
	}
	for _, l := range open {
		tell(l.Close())
	}
	return errs
}

func keepLoggers(items []item) (func(first, last []byte) []error, error) {
	return func(first, last []byte) (errs []error) {
		tell := teller(&errs)
		for _, it := range items {
			l := newLogger(it.path)
			_, err := l.Write(first)
			tell(errors.Join(err, os.WriteFile(it.path, it.data, 0o666)))
			_, err = l.Write(last)
			tell(errors.Join(err, l.Close()))
		}
		return errs
	}, nil
}
