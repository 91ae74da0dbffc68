package prove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/powercut"
)

// insideKinds are judged in a started kernel if none is chosen.
var insideKinds = []string{"ext4"}

// parseKernel knows the kernel that can be started.
func (p *proof) parseKernel(text string) (string, error) {
	if text != p.started.Name() {
		return "", fmt.Errorf("%q is not a kernel that holdfast can start; use %s, or leave --kernel out for the running kernel", text, p.started.Name())
	}
	return text, nil
}

// inside are the options for a file system in the kernel that is started.
func (p *proof) inside(o crash.Options, kind string) crash.Options {
	o.Room = func(ctx context.Context, args []string, order []byte, answers func(io.Reader) error) error {
		return p.started.Start(ctx, place.Work{Dir: cmp.Or(p.Dir, os.TempDir()), Kind: kind, Args: append([]string{childCommand, "--"}, args...), Input: order, Output: answers})
	}
	return o
}

// completeInside decides what level power does in the kernel that is started. A file system that the
// kernel lacks has a row that says why.
func (p *proof) completeInside(ctx context.Context, policies []holdfast.Policy) error {
	kinds := p.kinds
	if kinds == nil {
		kinds = insideKinds
	}
	if slices.Contains(kinds, powercut.Model) {
		return cli.Misuse("leave it out of --fs, or leave --kernel out", "%s is a model, which needs no kernel", powercut.Model)
	}
	lacking := map[string]error{}
	for _, kind := range kinds {
		err := p.started.Can(ctx, kind)
		if refusal := (*cli.Refusal)(nil); errors.As(err, &refusal) {
			return err // there is no such kernel
		}
		lacking[kind] = err
	}
	p.Power = func(ctx context.Context, o crash.Options, most time.Duration) ([]*crash.Verdict, error) {
		o.Policies = policies
		if !p.statesGiven {
			o.States = powerStates
		}
		// A kernel has one CPU. That each file system has its own keeps the others' verdicts if one crashes it.
		together := min(runtime.NumCPU(), len(kinds))
		most = most * time.Duration(together) / time.Duration(len(kinds))
		found := make([][]*crash.Verdict, len(kinds))
		turn := make(chan bool, together)
		var group sync.WaitGroup
		for i, kind := range kinds {
			turn <- true
			group.Go(func() {
				defer func() { <-turn }()
				err := lacking[kind]
				if err == nil {
					found[i], err = powercut.Run(ctx, p.inside(o, kind), []string{kind}, most)
				}
				if err != nil {
					found[i] = append(found[i], notKnown(kind, err))
				}
				for _, v := range found[i] {
					v.FS = p.kernel + "-" + kind
				}
			})
		}
		group.Wait()
		return slices.Concat(found...), context.Cause(ctx)
	}
	return nil
}

// notKnown is the row of a file system that could not be judged, or not in full.
func notKnown(kind string, err error) *crash.Verdict {
	return &crash.Verdict{Level: crash.PowerCut, FS: kind, Workload: "plain", Policy: holdfast.EachDurable(), Control: "correct", Verdict: crash.NotKnown, Unknown: err.Error()}
}

// kernelOf says whether a state was judged in the kernel that can be started.
func (p *proof) kernelOf(v *crash.Verdict) bool {
	return p.started != nil && v.Failure.Log != nil && v.FS == p.started.Name()+"-"+v.Failure.Log.FS
}
