package powercut

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// asUser runs a test as an ordinary user, if the model can be had.
func asUser(t *testing.T, test func(t *testing.T)) {
	t.Parallel()
	isolate.Fuse(t, func(t *testing.T) {
		needs(t, Model)
		test(t)
	})
}

// TestModelJudgesPrograms gives it programs of the shell.
func TestModelJudgesPrograms(t *testing.T) {
	asUser(t, func(t *testing.T) {
		judged := func(before, step string) *crash.Verdict {
			t.Helper()
			o := chosen()
			o.States = 60
			o.Program = &crash.Program{Command: before + "n=$(wc -l <log); while :; do n=$((n+1)); echo $n >>log; " + step + "; done", Read: "touch log; cat log"}
			verdicts, err := Run(t.Context(), o, []string{Model}, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range verdicts {
				if v.Workload == "program" {
					return v
				}
			}
			t.Fatalf("the program has no verdict: %+v", verdicts)
			return nil
		}
		if v := judged("touch log; sync .; ", "sync log; echo ack $n"); v.Failure != nil || v.Unknown != "" || v.Tally.States < 3 || v.Tally.Acknowledged == 0 {
			t.Errorf("%+v %+v", v, v.Failure)
		}
		for _, v := range []*crash.Verdict{
			judged("touch log; sync .; ", "echo ack $n; sync log"), // each ack has its place before the sync
			judged("touch log; ", "sync log; echo ack $n"),         // its name is nowhere
		} {
			if v.Failure == nil || v.Failure.Violation.Rule != "lost" || !strings.Contains(v.Failure.Words, "it had printed ack ") {
				t.Fatalf("%+v", v)
			}
			modelJudgedAgain(t, v.Failure)
		}
	})
}

// modelJudgedAgain holds that a failing state was made small, and is judged and looked at again from
// its file.
func modelJudgedAgain(t *testing.T, small *crash.Failure) {
	t.Helper()
	if s := small.State; s.Keep != 0 || s.Mask != 0 || s.Rest || s.Tear != 0 || len(small.Log.Entries) > s.Position+1 {
		t.Errorf("%+v of %d entries is not small", s, len(small.Log.Entries))
	}
	kept, err := json.Marshal(small)
	var again crash.Failure
	if err == nil {
		err = json.Unmarshal(kept, &again)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := Replay(t.Context(), chosen(), &again, "[ $(basename $PWD) = d ]")
	if err != nil || !reflect.DeepEqual(v, small.Violation) {
		t.Errorf("judged again: %+v, %v; it was %+v", v, err, small.Violation)
	}
	if _, err := Replay(t.Context(), chosen(), &again, "exit 3"); err == nil {
		t.Error("a look that fails is no error")
	}
}

// TestKilledModelLeavesNothing kills a run at work. Its processes and mounts end with it, and no file
// is left.
func TestKilledModelLeavesNothing(t *testing.T) {
	asUser(t, func(t *testing.T) {
		dir := t.TempDir()
		cmd := childAs("model")(t.Context())
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		mark := fmt.Sprintf("HOLDFAST_TEST_MODEL_MARK=%d.%d", os.Getpid(), time.Now().UnixNano())
		cmd.Env = append(cmd.Env, mark, "TMPDIR="+dir)
		var said tail
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for len(using(mark, "holdfast-model")) == 0 {
			select {
			case err := <-ended:
				t.Fatalf("it ended before it was killed: %v: %s", err, &said)
			case <-time.After(time.Millisecond):
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-ended
		for began := time.Now(); len(using(mark, "")) > 0; time.Sleep(time.Millisecond) {
			if time.Since(began) > patience {
				t.Fatalf("left: %v", using(mark, ""))
			}
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("left: %v, %v", files, err)
		}
		if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), "holdfast-model") {
			t.Errorf("%s, %v", mounts, err)
		}
	})
}

// using are the processes with a variable in their environment, and with such a mount.
func using(mark, mount string) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, _ := os.ReadFile(file)
		mounts, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "mountinfo"))
		if strings.Contains(string(env), mark) && strings.Contains(string(mounts), mount) {
			all = append(all, filepath.Dir(file))
		}
	}
	return all
}

// TestModelSaysWhatIsMissing refuses the mount, as a container's filter does.
func TestModelSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	isolate.Fuse(t, func(t *testing.T) {
		isolate.Without(t, unix.SYS_MOUNT, unix.EPERM, func(t *testing.T) {
			err := Can(t.Context(), chosen(), Model)
			if err == nil || !strings.Contains(err.Error(), "a user namespace with mounts of its own is refused") || !strings.Contains(err.Error(), "operation not permitted") {
				t.Errorf("%v", err)
			}
		})
	})
	if err := errors.Unwrap(&crash.RunError{Err: unix.EIO}); err != unix.EIO {
		t.Error(err)
	}
}

// TestStoppedServerIsItsCellsError stops a server's process for ever. Its cell fails, and the others
// have their verdicts.
func TestStoppedServerIsItsCellsError(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a server that never answers")
	}
	asUser(t, func(t *testing.T) {
		stopped(t, order{Model: true, Kinds: []string{Model}, Workloads: []string{plain.Name}, States: 100, Seconds: 1, Patience: 5 * time.Second})
	})
}
