//go:build go1.25

package logrus_test

import (
	"cmp"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/logrus"
	"github.com/holdfast-go/holdfast/internal/crashsuite"
	"github.com/holdfast-go/holdfast/rotate"
	sirupsen "github.com/sirupsen/logrus"
)

func TestLoggerKeepsThePromises(t *testing.T) {
	crashsuite.Run(t, crashsuite.Opener{
		Name: "logrus",
		Open: func(g *crashsuite.Ground) (crashsuite.Subject, error) {
			f, err := rotate.Open(filepath.Join(g.Dir, "app.log"), rotate.Options{Policy: g.Policy, OnError: func(e *rotate.Error) { g.OnError(e) }})
			if err != nil {
				return nil, err
			}
			l := &logger{Logger: sirupsen.New(), File: f}
			l.SetFormatter(plain{})
			logrus.Use(l.Logger, f)
			return l, nil
		},
		Read: func(_ *testing.T, files map[string][]byte) ([][]byte, error) {
			return crashsuite.Lines(files["app.log"]), nil
		},
		FailedSync: crashsuite.Later,
		Resumes:    true,
		Heals:      true,
		NoDisk:     "it writes to a rotate.File; package rotate has this promise on other disks",
		Lacks:      map[string]string{crashsuite.FullReal: "logrus returns no failed write, and prints it"},
	})
}

type plain struct{}

func (plain) Format(e *sirupsen.Entry) ([]byte, error) { return []byte(e.Message), nil }

// A logger logs one record at a time. That one was refused is known by the counts alone.
type logger struct {
	*sirupsen.Logger
	*rotate.File
	one sync.Mutex
}

func (l *logger) Write(p []byte) (n int, err error) {
	l.one.Lock()
	defer l.one.Unlock()
	before := l.Stats().Writes
	l.Info(string(p))
	if l.Stats().Writes == before {
		return 0, cmp.Or(l.Err(), holdfast.ErrClosed)
	}
	return len(p), nil
}
