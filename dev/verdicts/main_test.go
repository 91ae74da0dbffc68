//go:build linux

package main

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) {
	syscallfault.Launch()
	serve()
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

// TestNoVerdictIsWrong judges a third of the programs at level power for a short time, others in each run. The command does all, and at
// all levels.
func TestNoVerdictIsWrong(t *testing.T) {
	isolate.Once(t)
	third := rand.IntN(3)
	for i, p := range programs {
		if i%3 != third || p.name == "hangs behind a crash" { // that takes its patience
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			v, err := p.judge(t.Context(), crash.PowerCut, 300*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if v.Verdict == crash.Broken && p.wrong(2, v) {
				t.Errorf("%s, and it %s: %s", v.Verdict, p.truth, v.Failure.Words)
			}
		})
	}
}
