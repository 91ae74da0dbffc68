package recipes

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// Export writes thousands of files that become durable together, by a few syncs, and then a list of them. A reader that finds the list finds
// each of its files, whole, also after a power cut. For a program that runs for long, keep the Set.
func Export(ctx context.Context, dir string, reports iter.Seq2[string, []byte]) error {
	set, err := files.New(files.Options{Policy: holdfast.Durable(), MkdirAll: true})
	if err != nil {
		return err
	}
	defer set.Close() // nothing was appended, so it has no failure to report
	batch := set.Begin()
	defer batch.Discard()
	var list bytes.Buffer
	for name, text := range reports {
		if err := batch.Write(filepath.Join(dir, name), text); err != nil {
			return err
		}
		fmt.Fprintln(&list, name)
	}
	if _, err := batch.Commit(ctx); err != nil {
		return err
	}
	_, err = set.WriteFile(ctx, filepath.Join(dir, "complete"), list.Bytes(), files.Replace)
	return err
}
