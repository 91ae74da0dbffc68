package main

import (
	"encoding/csv"
	"errors"
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
	text, err := exec.Command(a, "compare", filepath.Join(dir, "0.jsonl"), filepath.Join(dir, "1.jsonl"), "--export", "csv").Output()
	var code *exec.ExitError
	if errors.As(err, &code) && code.ExitCode() == cli.ExitNotKnown {
		t.Skip("other programs disturbed one of the two runs") // which compare says
	}
	if err != nil {
		t.Errorf("%v: %s", err, text)
	}
	said, err := different(string(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(said) > 0 {
		t.Errorf("%s: %s", said, text)
	}
	t.Logf("by seed %d\n%s", seed, text)
}

// different returns what compare's CSV calls faster or slower, with its word.
func different(text string) (said []string, err error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 4 {
		return nil, fmt.Errorf("%d lines, want a head, all cells together and each", len(rows))
	}
	at := slices.Index(rows[0], "verdict")
	if at < 0 {
		return nil, fmt.Errorf("no verdict among %q", rows[0])
	}
	for _, row := range rows[1:] {
		if word := row[at]; word != "same" && word != "not proven" {
			said = append(said, row[0]+" "+word)
		}
	}
	return said, nil
}

// TestDifferentFindsEachWord judges a made-up comparison.
func TestDifferentFindsEachWord(t *testing.T) {
	t.Parallel()
	table := func(words ...string) string {
		text := "cell,ratio,verdict\n"
		for i, word := range words {
			text += fmt.Sprintf("cell%d,1.0,%s\n", i, word)
		}
		return text
	}
	if said, err := different(table("same", "not proven", "same")); err != nil || len(said) > 0 {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := different(table("same", "slower", "faster")); err != nil || !slices.Equal(said, []string{"cell1 slower", "cell2 faster"}) {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := different(table("same")); err == nil {
		t.Error("a table without its cells is no evidence")
	}
	if _, err := different(strings.Replace(table("same", "same", "same"), "verdict", "word", 1)); err == nil {
		t.Error("a table without verdicts is no evidence")
	}
}
