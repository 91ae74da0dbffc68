//go:build unix

package crash

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// asChild makes the test binary be the process that is killed.
const asChild = "HOLDFAST_TEST_PROVE_CHILD"

func TestMain(m *testing.M) {
	syscallfault.Launch()
	if os.Getenv(asChild) != "" {
		if err := Child(os.Args[1:], []*Workload{plain, panics}); err != nil {
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
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), asChild+"=1")
	return cmd
}

// TestChildThatFailsIsNoVerdict starts children that can't do their work.
func TestChildThatFailsIsNoVerdict(t *testing.T) {
	t.Parallel()
	o := Options{Policies: []holdfast.Policy{holdfast.Unbuffered()}, Workloads: []*Workload{plain}, Levels: []Level{Kill}, Dir: t.TempDir(),
		Child: func(ctx context.Context, args ...string) *exec.Cmd { return child(ctx, append(args, "too many")...) }}
	if verdicts, err := Prove(t.Context(), o); err == nil || !strings.Contains(err.Error(), "7 arguments") {
		t.Errorf("%v, %v", verdicts, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Prove(ctx, o); err == nil {
		t.Error("it went on after its context had ended")
	}
}

// panics is a workload that panics in a goroutine which it does not wait for.
var panics = &Workload{Name: "panics", Targets: plain.Targets, Loss: plain.Loss, Run: func(*Run) error {
	go func() { panic("planted") }()
	select {}
}}

// TestWorkloadThatPanicsIsBroken has it end its process, and no other's verdict.
func TestWorkloadThatPanicsIsBroken(t *testing.T) {
	t.Parallel()
	o := Options{Policies: []holdfast.Policy{holdfast.Unbuffered()}, Workloads: []*Workload{panics, plain}, Levels: []Level{Kill}, States: 100,
		Dir: t.TempDir(), Child: child}
	verdicts, err := Prove(t.Context(), o)
	if err != nil || len(verdicts) != 2 {
		t.Fatalf("%d verdicts: %v", len(verdicts), err)
	}
	for _, v := range verdicts {
		switch {
		case v.Workload == "panics":
			if v.Verdict != Broken || !strings.Contains(v.Failure.Words, "panic: planted") {
				t.Errorf("%s: %v, %+v", v.Level, v.Verdict, v.Failure)
			}
		case v.Verdict == Broken:
			t.Errorf("%s of %s: %s", v.Level, v.Workload, v.Failure.Words)
		}
	}
}

func TestPanicIsTold(t *testing.T) {
	check := func(said string, want bool) {
		t.Helper()
		if v := Panicked(said); (v != nil) != want {
			t.Errorf("%q: %v", said, v)
		}
	}
	check("", false)
	check("holdfast: open log: no space left on device", false)
	check("panic: runtime error: slice bounds out of range\n\ngoroutine 7 [running]:", true)
	check("fatal error: all goroutines are asleep - deadlock!", true)
	check("runtime: failed to create new OS thread (have 9 already; errno=11)\nfatal error: newosproc", false)
	check("fatal error: runtime: out of memory", false)
}

// TestProgramsOfThePage runs the examples of docs/prove.md: one loses what it acknowledged, the
// other does not.
func TestProgramsOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/prove.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?s)<!-- (keeps|loses) -->\n.*?--cmd '(.*?)' --read '(.*?)'`).FindAllStringSubmatch(string(page), -1)
	if len(shown) != 2 {
		t.Fatalf("docs/prove.md shows %d programs", len(shown))
	}
	for _, one := range shown {
		want := map[string]Known{"keeps": Held, "loses": Broken}[one[1]]
		p := Program{Command: one[2], Read: one[3], Dir: t.TempDir(), Time: time.Nanosecond, Seed: 1}
		v, err := p.Prove(t.Context())
		if err != nil || v.Verdict != want {
			t.Errorf("%s: %v, %+v", one[1], err, v)
		}
	}
	for _, wrong := range []Program{
		{Command: "exit 3", Read: "true"},
		{Command: "echo ack 1", Read: "echo one"},
		{Command: "echo ack 1", Read: "exit 3"},
		{Command: "echo hello", Read: "true"},
	} {
		wrong.Dir, wrong.Time = t.TempDir(), time.Nanosecond
		if v, err := wrong.Prove(t.Context()); err == nil {
			t.Errorf("%+v is %+v", wrong, v)
		}
	}
	double := Program{Command: "echo ack 2", Read: "echo 1; echo 1; echo 2", Dir: t.TempDir(), Time: time.Nanosecond}
	if v, err := double.Prove(t.Context()); err != nil || v.Failure == nil {
		t.Errorf("a record that occurs twice: %+v, %v", v, err)
	}
}
