package holdfast_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
)

// TestWriterKeepsThePromises by Write, and by Enqueue and WaitDurable.
func TestWriterKeepsThePromises(t *testing.T) {
	o := crashsuite.Opener{
		Name: "Writer",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) { return openWriter(g) },
		Slow: true,
		AtRisk: func(err error) int64 {
			var write *holdfast.WriteError
			var sync *holdfast.SyncError
			switch {
			case errors.As(err, &write):
				return write.AtRisk
			case errors.As(err, &sync):
				return sync.AtRisk
			}
			return 0
		},
		Read: func(_ *testing.T, files map[string][]byte) ([][]byte, error) {
			return crashsuite.Lines(files["log"]), nil
		},
	}
	t.Run("Write", func(t *testing.T) { crashsuite.Run(t, o) })
	// Of a record that is larger than the buffer, a failed Enqueue does not say how much is in the file.
	o.Policies = func(p holdfast.Policy) bool { return p.Buffer >= 4*holdfast.KiB }
	o.Open = func(g *crashsuite.Ground) (crashsuite.Subject, error) {
		w, err := openWriter(g)
		return enqueuer{w, g.Policy.Sync.Waits()}, err
	}
	t.Run("Enqueue", func(t *testing.T) { crashsuite.Run(t, o) })
}

func openWriter(g *crashsuite.Ground) (w *holdfast.Writer, err error) {
	if g.Disk == nil {
		w, err = holdfast.Append(filepath.Join(g.Dir, "log"), g.Policy)
	} else {
		var f holdfast.File
		if f, err = g.File("log"); err == nil {
			w, err = holdfast.New(f, g.Policy)
		}
	}
	if err == nil {
		w.OnError(g.OnError)
	}
	return w, err
}

// An enqueuer writes by Enqueue, and waits where the policy does.
type enqueuer struct {
	*holdfast.Writer
	waits bool
}

func (w enqueuer) Write(p []byte) (n int, err error) {
	end, err := w.Enqueue(p)
	if err != nil {
		return 0, err
	}
	if w.waits {
		err = w.WaitDurable(context.Background(), end)
	}
	return len(p), err
}
