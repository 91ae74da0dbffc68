package prove

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/lab/powercut"
	"github.com/holdfast-go/holdfast/internal/lab/prove"
)

// completePower decides what level power does. A file system that can't be had is left out if it
// was not asked for.
func (p *proof) completePower(stderr io.Writer, all bool) error {
	kinds, policies, states := p.kinds, p.Policies, p.States
	if len(policies) == 0 {
		p.Policies = prove.NamedPolicies()
		policies = []holdfast.Policy{holdfast.Durable()} // the others promise less at a power cut
	}
	if !slices.Contains(p.Levels, prove.PowerCut) {
		if kinds != nil {
			return cli.Misuse("add --level power", "--fs chooses what level power mounts, and that level is not run")
		}
		return nil
	}
	if len(kinds) == 0 {
		kinds = powercut.Kinds[:3]
		if all {
			kinds = kinds[:1] // --time is short
		}
	}
	var here []string
	for _, kind := range kinds {
		if err := powercut.Can(kind); err == nil {
			here = append(here, kind)
		} else if p.kinds != nil {
			return cli.Misuse("run as root, or leave it out of --fs", "level power can't be had on %w", err)
		} else {
			cli.Say(stderr, "level power is left out on %v: what a power cut leaves of %s is not known", err, kind)
		}
	}
	switch {
	case len(here) > 0:
	case all:
		p.Levels = slices.DeleteFunc(p.Levels, func(l prove.Level) bool { return l == prove.PowerCut })
	default:
		return cli.Misuse("run as root, or use --level memory,kill", "level power can't be had")
	}
	p.Power = func(ctx context.Context, o prove.Options, most time.Duration) ([]*prove.Verdict, error) {
		o.Policies = policies
		if !p.statesGiven {
			states = powerStates
		}
		o.States = states
		return powercut.Run(ctx, o, here, most)
	}
	return nil
}

// powerStates is how many states are mounted for each workload and policy.
const powerStates = 120
