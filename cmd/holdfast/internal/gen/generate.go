package gen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/lab/datagen"
)

// genChunk is how much is made and written at once: it stays in a processor's
// second cache from the one to the other.
const genChunk = 256 << 10

// write fills and closes the file. It returns an error with how far it got and the call
// that failed.
func (g *generation) write(ctx context.Context, f *os.File, old fs.FileInfo, show *cli.Progress) (done int64, op string, err error) {
	w, err := holdfast.New(f, g.policy)
	if err != nil {
		f.Close()
		return 0, "open", err
	}
	if old != nil {
		op, err = "chmod", f.Chmod(old.Mode().Perm())
	}
	switch {
	case err != nil:
	case g.kind == genSparse:
		op, err = "truncate", f.Truncate(int64(g.size))
	default:
		op = "write"
		done, err = g.fill(ctx, w, show)
	}
	if err == nil && done == 0 && g.durable() {
		op, err = "sync", f.Sync() // a Writer without a byte has nothing to sync
	}
	if err != nil {
		_ = f.Truncate(0) // so that Close waits for no byte that is removed afterwards
		_ = w.Close()
		return done, op, err
	}
	if err = w.Close(); err == nil {
		err = ctx.Err()
	}
	return done, "close", err
}

// fill writes the bytes, chunk by chunk, and returns how many were written.
func (g *generation) fill(ctx context.Context, w io.Writer, show *cli.Progress) (done int64, err error) {
	bytes := datagen.New(fillers[g.kind], g.seed)
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
		show.SetBytes(done)
	}
	return done, nil
}

// refusal gives an error, after done bytes, its exit code and its hint.
func (g *generation) refusal(err error, done int64, op, left string) error {
	if errors.Is(err, context.Canceled) {
		return &cli.Refusal{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted after %s of %s", cli.BytesText(done), cli.BytesText(int64(g.size))), Hint: left}
	}
	at := ""
	if op == "write" {
		at = fmt.Sprintf(" at byte %d", done)
	}
	hint := cli.DiskHint(err)
	if errors.Is(err, fs.ErrExist) {
		hint = "somebody else has made it meanwhile; --force replaces it"
	}
	if hint != "" && left != "" {
		left += "; "
	}
	return &cli.Refusal{Code: cli.ExitNotMet, Err: fmt.Errorf("gen %s: %s%s: %w", g.file, op, at, cli.Cause(err)), Hint: left + hint}
}
