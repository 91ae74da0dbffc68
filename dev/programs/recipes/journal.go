package recipes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/wal"
)

// Consume gives the events of a journal to a function, one after the other, and waits for more until ctx ends. The journal is a wal.Log that
// others Append to. Any number of consumers follow it, each with a file that has its position: so after a crash one goes on where it was. An
// event that it had handled just before comes again, none is left out.
func Consume(ctx context.Context, journal *wal.Log, position string, handle func(event []byte) error) error {
	next := journal.First()
	text, err := os.ReadFile(position)
	if err == nil {
		next, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for event, err := range journal.Follow(ctx, next) {
		if err != nil {
			return err // that of ctx, too
		}
		if err := handle(event.Data); err != nil {
			return err
		}
		if err := files.WriteFile(position, strconv.AppendUint(nil, event.Index+1, 10), 0o644); err != nil {
			return err
		}
	}
	return nil
}
