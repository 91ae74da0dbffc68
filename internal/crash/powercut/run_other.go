//go:build !linux

package powercut

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/prove"
)

var errLinux = errors.New("it needs FUSE and loop devices of Linux")

// Can returns an error.
func Can(context.Context, prove.Options, string) error { return errLinux }

// Run returns an error.
func Run(context.Context, prove.Options, []string, time.Duration) ([]*prove.Verdict, error) {
	return nil, errLinux
}

// Replay returns an error.
func Replay(context.Context, prove.Options, *prove.Failure, string) (*prove.Violation, error) {
	return nil, errLinux
}

// ShowRefusals returns an error.
func ShowRefusals(context.Context, prove.Options, []string) ([]Refusal, error) { return nil, errLinux }

// ShowSyncs returns an error.
func ShowSyncs(context.Context, prove.Options, []string) ([]Sync, error) { return nil, errLinux }

// Process is a process that package prove starts.
func Process(args []string, _ prove.Options) error { return prove.Child(args) }
