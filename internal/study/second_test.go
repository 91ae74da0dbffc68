package study

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asSecond makes the test binary be the second process of an arm.
const asSecond = "HOLDFAST_TEST_AS_SECOND"

func TestMain(m *testing.M) {
	if os.Getenv(asSecond) == "" {
		os.Exit(m.Run())
	}
	if err := RunSecond(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// secondTest is a [trial.Ground]'s Second.
func secondTest(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asSecond+"=1", "GORACE=atexit_sleep_ms=0") // else it sleeps for a second when it ends
	return cmd
}

func TestSecondProcessRefusesUnknownWork(t *testing.T) {
	out, err := secondTest(t.Context(), "dance").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `no work "dance"`) {
		t.Errorf("err = %v: %s", err, out)
	}
}
