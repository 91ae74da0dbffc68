package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/uml"
	"github.com/holdfast-go/holdfast/internal/volume"
)

// TestInterruptInsideKeepsTheRoundsUntilThen waits until the guest has handed rounds
// over, which it does each second.
func TestInterruptInsideKeepsTheRoundsUntilThen(t *testing.T) {
	if raceEnabled {
		t.Skip("a program with the race detector does not start in User-Mode Linux")
	}
	if _, err := uml.Find(t.Context()); err != nil {
		t.Skip(err)
	}
	if kinds, err := volume.Parse(besideKind); err != nil || kinds[0].CanMake() != nil {
		t.Skip("an ext4 can't be made here")
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
	c := startChild(t, "bench", "copy", "--kernel", "uml", "--fs", "ext4", "--part", "sync", "--quick", "--rounds", "1000", "--allow-tmpfs", "--dir", dir, "-o", file)
	for whole := false; !whole; {
		c.until(t, "inside: round ")
		inside, err := filepath.Glob(filepath.Join(dir, "*", guestResults))
		if err != nil || len(inside) != 1 {
			t.Fatalf("%q; %v", inside, err)
		}
		text, err := os.ReadFile(inside[0])
		if err != nil {
			t.Fatal(err)
		}
		whole = bytes.Contains(text, []byte(`"round":2,`))
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(t); code != exitInterrupted || !strings.Contains(c.told.String(), "the rounds inside that were whole are in "+file) {
		t.Errorf("exit code %d:\n%s", code, c.told.String())
	}
	if run := readFile(t, file); run.Rounds() < 1 || run.End != nil {
		t.Errorf("%d rounds, end %+v", run.Rounds(), run.End)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v; %v", left, err)
	}
}
