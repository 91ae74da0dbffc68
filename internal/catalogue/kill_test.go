//go:build unix && go1.25

package catalogue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/powercut"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// asChild makes the test binary be a process that is killed, or one of level power.
const asChild = "HOLDFAST_TEST_PROVE_CHILD"

func TestMain(m *testing.M) {
	syscallfault.Launch()
	if os.Getenv(asChild) != "" {
		if err := powercut.Process(os.Args[1:], crash.Options{Child: child, Workloads: Workloads()}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

func child(ctx context.Context, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err) // every Unix that is tested knows it
	}
	if runtime.GOOS == "linux" {
		exe = "/proc/self/exe" // level power hides the directory of temporary files
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), asChild+"=1")
	return cmd
}

// TestKilledProcessesLoseNoMoreThanTheirPolicy kills each workload under some of its generated policies some
// times, with the time that it takes.
func TestKilledProcessesLoseNoMoreThanTheirPolicy(t *testing.T) {
	t.Parallel()
	o := crash.Options{Seed: rand.Uint64(), Workloads: Workloads(), Levels: []crash.Level{crash.Kill}, Dir: isolate.DirInMemory(t), Child: child, Least: 14}
	least := 1000
	if testing.Short() {
		o.Least, least = 1, 50
	}
	began := time.Now()
	verdicts, err := crash.Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	kills := 0
	for _, v := range verdicts {
		kills += v.Kills
		if v.Verdict != crash.Held {
			t.Errorf("%s under %v is %s, seed %d: %+v", v.Workload, v.Policy, v.Verdict, v.Seed, v.Failure)
		}
	}
	t.Logf("%d kills in %v", kills, time.Since(began))
	if kills < least {
		t.Errorf("%d kills, want %d", kills, least)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
