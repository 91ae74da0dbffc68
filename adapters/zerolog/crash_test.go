//go:build go1.25

package zerolog_test

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/adapters/zerolog"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/rotate"
	rs "github.com/rs/zerolog"
)

func TestWriterKeepsThePromises(t *testing.T) {
	crashsuite.Run(t, crashsuite.Opener{
		Name: "zerolog",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
			f, err := rotate.Open(filepath.Join(g.Dir, "app.log"), rotate.Options{Policy: g.Policy, OnError: func(e *rotate.Error) { g.OnError(e) }})
			return leveled{zerolog.Writer{File: f}}, err
		},
		Read: func(_ *testing.T, files map[string][]byte) ([][]byte, error) {
			return crashsuite.Lines(files["app.log"]), nil
		},
		FailedSync: crashsuite.Later,
		Resumes:    true,
		Heals:      true,
		NoDisk:     "it writes to a rotate.File; package rotate has this promise on other disks",
	})
}

// leveled writes as zerolog does.
type leveled struct{ zerolog.Writer }

func (w leveled) Write(p []byte) (int, error) { return w.WriteLevel(rs.InfoLevel, p) }
