package probe

import (
	"github.com/holdfast-go/holdfast/internal/isolate"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// tellMonotonic is the environment variable that makes the test below the other
// process.
const tellMonotonic = "HOLDFAST_TEST_MONOTONIC"

// TestMonotonicIsTheSameForAllProcesses has another process print the time between
// two readings of this one.
func TestMonotonicIsTheSameForAllProcesses(t *testing.T) {
	now, err := Monotonic()
	isolate.Supported(t, err)
	if os.Getenv(tellMonotonic) != "" {
		_, err := os.Stdout.WriteString(strconv.FormatInt(int64(now), 10))
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestMonotonicIsTheSameForAllProcesses$")
	cmd.Env = append(os.Environ(), tellMonotonic+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	there, err := strconv.ParseInt(string(out), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Monotonic()
	if err != nil || time.Duration(there) < now || after < time.Duration(there) {
		t.Errorf("another process read %v between %v and %v, %v", time.Duration(there), now, after, err)
	}
}

func TestPauseTakesItsTime(t *testing.T) {
	const pause = 200 * time.Microsecond
	for range 20 { // a signal may end one early: the runtime sends some
		begun := time.Now()
		Pause(pause)
		if time.Since(begun) >= pause {
			return
		}
	}
	t.Errorf("20 pauses were all shorter than %v", pause)
}
