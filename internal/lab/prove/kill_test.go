//go:build unix

package prove

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// asChild makes the test binary be the process that is killed.
const asChild = "HOLDFAST_TEST_PROVE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		if err := Child(os.Args[1:]); err != nil {
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
		panic(err)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), asChild+"=1")
	return cmd
}

func TestKillAll(t *testing.T) {
	o := Options{Policies: NamedPolicies(), Workloads: Workloads(), Levels: []Level{Kill}, Time: 8 * time.Second, Dir: t.TempDir(), Child: child}
	kills, began := 0, time.Now()
	o.Each = func(v *Verdict) {
		kills += v.Kills
		t.Logf("%-18s %-32v %4d kills %v %v %+v", v.Workload, v.Policy, v.Kills, v.Elapsed, v.Verdict, v.Tally)
		if v.Failure != nil {
			t.Log("FAIL", v.Failure.Words)
		}
	}
	if _, err := Prove(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Log(kills, time.Since(began))
}
