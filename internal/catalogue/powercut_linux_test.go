//go:build go1.25

package catalogue

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/powercut"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// chosen are options for workloads of these names, and the controls.
func chosen(workloads ...string) crash.Options {
	var some []*crash.Workload
	for _, name := range workloads {
		some = append(some, Find(name))
	}
	return crash.Options{Policies: []holdfast.Policy{holdfast.Durable()}, Workloads: With(some...), States: 150, Seed: rand.Uint64(), Child: child}
}

func needs(t *testing.T, kind string) {
	t.Helper()
	if err := powercut.Can(t.Context(), chosen(), kind); err != nil {
		t.Skipf("what a power cut leaves of %s is not known here: %v", kind, err)
	}
}

// TestPowerCutsOfRealFileSystems judges states of workloads and of all controls. Each liar must be
// caught, and nothing else.
func TestPowerCutsOfRealFileSystems(t *testing.T) {
	t.Parallel()
	needs(t, "ext4")
	kinds, workloads := []string{"ext4"}, []string{"writer", "append", "whole-replace", "copy-resume"}
	if !testing.Short() {
		for _, more := range []string{"xfs", "btrfs", "ext3"} {
			if err := powercut.Can(t.Context(), chosen(), more); err == nil {
				kinds = append(kinds, more)
			}
		}
	}
	// The end of the time leaves a few states of each, and all that a liar needs to be caught.
	verdicts, err := powercut.Run(t.Context(), chosen(workloads...), kinds, time.Duration(len(kinds))*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	states, rows := int64(0), map[string]int{}
	for _, v := range verdicts {
		states += v.Tally.States
		rows[v.FS]++
		liar := v.IsLiar()
		if liar != (v.Failure != nil) {
			t.Errorf("%s, %s: %d states, %+v %s", v.FS, v.Workload, v.Tally.States, v.Failure, v.Unknown)
		}
		if v.Failure == nil && (v.Tally.States < 4 || v.Tally.Unmountable > 0) {
			t.Errorf("%s, %s: %+v %s", v.FS, v.Workload, v.Tally, v.Unknown)
		}
	}
	for _, kind := range kinds {
		if rows[kind] < len(workloads)+6 {
			t.Errorf("%s has %d rows", kind, rows[kind])
		}
	}
	t.Logf("%d states", states)
}

// TestModelIsCutWithoutRoot judges workloads and all controls. Each liar must be caught, and nothing
// else.
func TestModelIsCutWithoutRoot(t *testing.T) {
	isolate.Once(t, isolate.Race)
	t.Parallel()
	isolate.Fuse(t, func(t *testing.T) {
		needs(t, powercut.Model)
		workloads := []string{"writer", "append", "whole-create", "whole-replace", "copy-atomic", "copy-tree", "rotate"}
		o := chosen(workloads...)
		o.States = 20_000
		verdicts, err := powercut.Run(t.Context(), o, []string{powercut.Model}, 4*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		states := int64(0)
		for _, v := range verdicts {
			states += v.Tally.States
			liar := v.IsLiar()
			if liar != (v.Failure != nil) || v.FS != powercut.Model || v.Unknown != "" {
				t.Errorf("%s, %s: %d states, %+v %s", v.FS, v.Workload, v.Tally.States, v.Failure, v.Unknown)
			}
			if v.Control == "" && (v.Tally.Acknowledged == 0 || v.Tally.States < 100) {
				t.Errorf("%s: %+v", v.Workload, v.Tally)
			}
		}
		if len(verdicts) != len(workloads)+9 { // controls: three are correct, and five programs and a disk are liars
			t.Errorf("%d rows", len(verdicts))
		}
		t.Logf("%d states", states)
	})
}

// TestModelTakesRootToo judges the controls for root.
func TestModelTakesRootToo(t *testing.T) {
	isolate.Once(t, isolate.Race)
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("root does not run this")
	}
	needs(t, powercut.Model)
	o := chosen()
	o.States = 1000
	verdicts, err := powercut.Run(t.Context(), o, []string{powercut.Model}, time.Second)
	if err != nil || len(verdicts) != 9 {
		t.Fatalf("%d rows, %v", len(verdicts), err)
	}
	for _, v := range verdicts {
		if v.Unknown != "" || (v.Control == "correct") != (v.Failure == nil) {
			t.Errorf("%s: %+v %s", v.Workload, v.Failure, v.Unknown)
		}
	}
}
