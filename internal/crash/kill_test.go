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
		if err := Child(os.Args[1:], []*Workload{plain}); err != nil {
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
