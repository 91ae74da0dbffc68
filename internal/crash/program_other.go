//go:build unix && !linux

package crash

import (
	"context"
	"errors"
)

func (*proving) byFault(context.Context) error { return errors.New(noSupervisor) }

func (*proving) byPower(context.Context) error { return errors.New(noSupervisor) }

func (*proving) byEnds(context.Context) error { return errors.New(noSupervisor) }
