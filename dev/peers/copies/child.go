package copies

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// A trialOrder is the order to a child process: one arm's copying, once.
type trialOrder struct {
	Quick     bool
	Race, Arm string
	From, To  string
	Files     int    // of the job's
	Path      string // the directory of our command, or nothing
}

// carryOut runs an order in a child.
func (t trialOrder) carryOut(io.Writer) (any, error) {
	r, a := command.Find(races(t.Quick, states), t.Race, t.Arm)
	if r == nil {
		return nil, fmt.Errorf("%s/%s: there is no such arm", t.Race, t.Arm)
	}
	if t.Path != "" {
		if err := os.Setenv("PATH", t.Path+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
			return nil, err
		}
	}
	r.Job.files = t.Files
	runtime.GC()
	begun, cpu := time.Now(), command.CPUTime()
	err := a.Do.copies(context.Background(), r.Job.job, t.From, t.To)
	if err != nil {
		return command.Broken(err), nil
	}
	return command.Sample{Elapsed: time.Since(begun), CPU: command.CPUTime() - cpu, Units: t.Files}, nil
}
