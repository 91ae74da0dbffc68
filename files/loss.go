package files

import (
	"github.com/holdfast-go/holdfast"
)

// Loss returns the bounds for all bytes that a [Set] under these options has accepted
// by Append to this number of paths. In bytes it is the bound of the Policy for each path,
// and never more than Memory. A sync by bytes counts the bytes of all paths together. Bytes that
// [Set.WriteFile] and [Set.WriteAll] have written wait in no memory.
func (o Options) Loss(paths int) holdfast.Loss {
	all := o.Policy.Loss()
	if one := all.Process.Bytes; one > 0 {
		all.Process.Bytes = o.memory()
		if holdfast.Size(paths) < o.memory()/one {
			all.Process.Bytes = holdfast.Size(paths) * one
		}
	}
	if all.Power.InFlight {
		all.Power.Bytes = o.Policy.Sync.Bytes + all.Process.Bytes
	}
	return all
}
