//go:build go1.25

package zap_test

import (
	"net/url"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/rotate"
	uber "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestSinkKeepsThePromises(t *testing.T) {
	if err := register(); err != nil {
		t.Fatal(err)
	}
	crashsuite.Run(t, crashsuite.Opener{
		Name: "zap",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
			heard = func(e *rotate.Error) { g.OnError(e) }
			path := filepath.ToSlash(filepath.Join(g.Dir, "app.log"))
			out, closeAll, err := uber.Open("holdfast://" + path + "?policy=" + url.QueryEscape(g.Policy.String()))
			return sink{out, closeAll}, err
		},
		Read: func(_ *testing.T, files map[string][]byte) ([][]byte, error) {
			return crashsuite.Lines(files["app.log"]), nil
		},
		FailedSync: crashsuite.Later,
		Resumes:    true,
		Heals:      true,
		NoDisk:     "zap opens it by a URL, on the kernel's disk; package rotate has this promise on others",
	})
}

// A sink is closed as zap.Open says: its failures are heard alone.
type sink struct {
	zapcore.WriteSyncer
	closeAll func()
}

func (s sink) Close() error {
	s.closeAll()
	return nil
}
