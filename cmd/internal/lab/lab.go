// Package lab is the laboratory: the studies that repeat published experiments, one package each
// below this one. Only the commands that run studies import it; the others get the list from main.
//
// Start with [Studies].
package lab

import (
	"maps"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/bytewise"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/copying"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/costs"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/latency"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/lines"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/locks"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/manyfiles"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/reads"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/zerocopy"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
)

// Studies are all studies, in the order of the audit's table.
func Studies() study.List {
	return study.List{
		lines.Study(), bytewise.Study(), costs.Study(), locks.Study(), reads.Study(),
		latency.Study(), manyfiles.Study(), copying.Study(), zerocopy.Study(),
	}
}

// Roles are the work of all studies, and of sweeps, for a second process.
func Roles() map[string]study.Role {
	all := map[string]study.Role{}
	for _, of := range []map[string]study.Role{lines.Roles(), latency.Roles, zerocopy.Roles, sweep.Roles} {
		maps.Copy(all, of)
	}
	return all
}
