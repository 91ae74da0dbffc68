//go:build !linux

package prove

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// CanSupervise says why levels fault and hostile can't be had here; "" is that they can.
func CanSupervise() string { return "a supervisor for system calls needs Linux" }

func (v *Verdict) byFault(context.Context, Cell, Options, time.Duration) error {
	return errors.New(CanSupervise())
}

func (Program) byFault(context.Context, *Verdict, *rand.Rand, time.Time) error {
	return errors.New(CanSupervise())
}
