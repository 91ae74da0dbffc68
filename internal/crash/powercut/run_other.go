//go:build !linux

package powercut

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
)

var errLinux = errors.New("it needs FUSE and loop devices of Linux")

// Can returns an error.
func Can(context.Context, crash.Options, string) error { return errLinux }

// Run returns an error.
func Run(context.Context, crash.Options, []string, time.Duration) ([]*crash.Verdict, error) {
	return nil, errLinux
}

// Replay returns an error.
func Replay(context.Context, crash.Options, *crash.Failure, string) (*crash.Violation, error) {
	return nil, errLinux
}

// ShowRefusals returns an error.
func ShowRefusals(context.Context, crash.Options, []string) ([]Refusal, error) { return nil, errLinux }

// ShowSyncs returns an error.
func ShowSyncs(context.Context, crash.Options, []string) ([]Sync, error) { return nil, errLinux }

// Process is a process that package crash starts.
func Process(args []string, o crash.Options) error { return crash.Child(args, o.Workloads) }
