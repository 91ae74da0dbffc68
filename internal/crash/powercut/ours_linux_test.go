//go:build go1.25

package powercut

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/catalogue"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// Of holdfast's own the disk refuses a write in each run.
func init() {
	for name, policy := range map[string]holdfast.Policy{"writer": holdfast.Durable(), "rotate": holdfast.Durable(),
		"wal": {Buffer: 4 * holdfast.KiB, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} { // whose segments are allocated without zeros
		w := *catalogue.Find(name)
		w.Failing, w.Policies = true, []holdfast.Policy{policy}
		ours = append(ours, &w)
	}
}

// TestOursHoldBehindAFailedSync lets the disk refuse a write of holdfast's own, lets them go on or be opened again, and cuts the
// power.
func TestOursHoldBehindAFailedSync(t *testing.T) {
	isolate.Once(t, isolate.Race)
	t.Parallel()
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			needs(t, kind)
			met := map[string]int{}
			for seed := range uint64(4) {
				o := chosen()
				o.Workloads, o.Seed, o.States = ours, 100*seed, 60
				verdicts, err := Run(t.Context(), o, []string{kind}, 2*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range verdicts {
					own := catalogue.Find(v.Workload) != nil
					if met[v.Workload] += v.Faults; own && (v.Failure != nil || v.Unknown != "") {
						t.Errorf("seed %d: %s: %s%+v", o.Seed, v.Workload, v.Unknown, v.Failure)
					}
				}
			}
			for _, name := range []string{"writer", "rotate", "wal"} {
				if met[name] == 0 {
					t.Errorf("no write of %s was refused", name)
				}
			}
		})
	}
}
