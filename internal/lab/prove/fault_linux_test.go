package prove

import (
	"os"
	"testing"
)

// TestFailingCallsBreakNoPromise gives each workload some faults. The command gives more.
func TestFailingCallsBreakNoPromise(t *testing.T) {
	t.Parallel()
	if why := CanSupervise(); why != "" {
		t.Skip(why)
	}
	o := Options{Policies: NamedPolicies(), Workloads: Workloads(), Levels: []Level{Fault}, Dir: t.TempDir(), Child: child}
	if testing.Short() {
		o.Policies = o.Policies[3:4]
	}
	verdicts, err := Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	faults := 0
	for _, v := range verdicts {
		faults += v.Faults
		if v.Verdict != Held {
			t.Errorf("%s under %v is %s, seed %d: %+v", v.Workload, v.Policy, v.Verdict, v.Seed, v.Failure)
		}
	}
	t.Logf("%d faults", faults)
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
