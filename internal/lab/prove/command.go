package prove

import "context"

type Command interface{}

func (v *Verdict) byKill(ctx context.Context, w *Workload, o Options, share interface{}) error {
	return nil
}
