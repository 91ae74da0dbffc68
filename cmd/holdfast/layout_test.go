package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// quiet is the variable of the environment that says that the machine is quiet enough to measure.
const quiet = "HOLDFAST_QUIET"

// laidOut builds the command with its functions in another order, by a seed; 0 is the usual order.
func laidOut(t *testing.T, seed int) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "holdfast")
	build := exec.Command("go", "build", fmt.Sprintf("-ldflags=-randlayout=%d", seed), "-o", program, ".")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return program
}

// address returns where a function of a program begins.
func address(t *testing.T, program, function string) uint64 {
	t.Helper()
	text, err := exec.Command("go", "tool", "nm", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[2] == function {
			at, err := strconv.ParseUint(fields[0], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("%s has no function %s", program, function)
	return 0
}

// TestWhereTheLinkerPutsItIsNoDifference builds the command twice. In the second build the functions lie elsewhere, and Write
// begins in the other half of a line of the CPU's cache. No word but same is said of the two.
func TestWhereTheLinkerPutsItIsNoDifference(t *testing.T) {
	if os.Getenv(quiet) == "" || isolate.RaceEnabled || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("it measures: dev/tools/bars/bars.sh runs it, on a quiet machine")
	}
	const function = "github.com/holdfast-go/holdfast.(*Writer).Write"
	const most = 8
	a, b, seed := laidOut(t, 0), "", 1
	for ; seed <= most; seed++ {
		if b = laidOut(t, seed); (address(t, b, function)-address(t, a, function))%64 == 32 {
			break
		}
	}
	if seed > most {
		t.Fatal("no build has Write in the other half of a line")
	}
	dir := t.TempDir()
	for i, program := range []string{a, b} {
		cmd := exec.Command(program, "bench", "--allow-tmpfs", "--dir", dir, "--writers", "1", "--policy", "buffer=64KiB", "--policy", "buffer=4KiB", "--rounds", "12", "--time", "4s",
			"-o", filepath.Join(dir, fmt.Sprint(i, ".jsonl")))
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	compare := exec.Command(a, "compare", filepath.Join(dir, "0.jsonl"), filepath.Join(dir, "1.jsonl"), "--export", "csv")
	text, err := compare.Output()
	if compare.ProcessState == nil {
		t.Fatal(err)
	}
	wrong, disturbed := toldApart(text, compare.ProcessState.ExitCode())
	if disturbed {
		t.Skip("other programs disturbed one of the two runs") // which compare says
	}
	if wrong != "" {
		t.Errorf("%s\n%s", wrong, text)
	}
	t.Logf("by seed %d\n%s", seed, text)
}

// toldApart returns what compare says of two builds of one code, by its CSV and its exit code, that it must not say. It must say
// something of two cells and of both together. A disturbed pair has no verdict.
func toldApart(text []byte, code int) (wrong string, disturbed bool) {
	if code == cli.ExitNotKnown {
		return "", true
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		return err.Error(), false
	}
	var words []string
	if code != cli.ExitOK {
		words = append(words, fmt.Sprintf("it exits with %d", code))
	}
	if len(rows) < 4 {
		return fmt.Sprintf("it has %d lines", len(rows)), false
	}
	verdict := slices.Index(rows[0], "verdict")
	if verdict < 0 {
		return "it has no column of verdicts", false
	}
	for _, row := range rows[1:] {
		if word := row[verdict]; word != "same" && word != "not proven" {
			words = append(words, row[0]+" is "+word)
		}
	}
	return strings.Join(words, "; "), false
}

func TestToldApart(t *testing.T) {
	const head = "cell,ratio,verdict,regressed\n"
	check := func(text string, code int, want string, wantDisturbed bool) {
		t.Helper()
		if got, disturbed := toldApart([]byte(text), code); got != want || disturbed != wantDisturbed {
			t.Errorf("%q, %v, want %q, %v", got, disturbed, want, wantDisturbed)
		}
	}
	check(head+"a,1.01,same,false\nb,1.04,not proven,false\noverall,1,same,false\n", cli.ExitOK, "", false)
	check(head+"a,1.21,slower,true\nb,1,same,false\noverall,0.9,faster,false\n", cli.ExitNotMet, "it exits with 1; a is slower; overall is faster", false)
	check(head+"a,1.21,slower,false\nb,1,same,false\noverall,1,same,false\n", cli.ExitNotKnown, "", true)
	check(head+"a,1,same,false\noverall,1,same,false\n", cli.ExitOK, "it has 3 lines", false)
	check("", cli.ExitOK, "it has 0 lines", false)
}
