//go:build !linux

package crash

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// CanSupervise says why levels fault and hostile can't be had here; "" is that they can.
func CanSupervise(*exec.Cmd) string { return noSupervisor }

const noSupervisor = "a supervisor for system calls needs Linux"

func (v *Verdict) byFault(context.Context, Cell, Options, time.Duration) error {
	return errors.New(noSupervisor)
}

func (v *Verdict) byHostile(context.Context, *Workload, Options, time.Duration) error {
	return errors.New(noSupervisor)
}
