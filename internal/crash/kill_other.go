//go:build !unix

package crash

import (
	"context"
	"errors"
	"time"
)

// CanKill says why level kill can't be had here; "" is that it can.
const CanKill = "this system has no process groups and no shared memory that holdfast knows"

func (v *Verdict) byKill(context.Context, *Workload, Options, time.Duration) error {
	return errors.New(CanKill)
}

// Prove kills the program.
func (Program) Prove(context.Context) (*Verdict, error) { return nil, errors.New(CanKill) }

// Child does nothing here.
func Child([]string, []*Workload) error { return errors.New(CanKill) }

// RemoveStale does nothing: nothing is made here.
func (Options) RemoveStale() error { return nil }
