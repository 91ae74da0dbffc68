package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nodeWord {
		if err := node(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) {
	isolate.RefusesUnknownCommand(t)
	for _, args := range [][]string{nil, {"crush"}, {"bench", "-no"}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestEachNodeHasWhatWasAcknowledged, once, after kills and stops, and after it was far behind.
func TestEachNodeHasWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	k := crash{store: "holdfast", time: 5 * time.Second, behind: 3000, seed: uint64(time.Now().UnixNano())}
	if err := k.run(t.Context(), isolate.OnDisk(t), &out); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
}

// TestAStoreThatForgetsIsFound: without this no run has proven anything.
func TestAStoreThatForgetsIsFound(t *testing.T) {
	t.Parallel()
	k := crash{store: "memory", time: time.Second, seed: 11}
	for range 5 {
		err := k.run(t.Context(), t.TempDir(), new(strings.Builder))
		if err != nil && strings.Contains(err.Error(), "acknowledged commands are missing") {
			return
		}
		t.Log(err)
		k.seed++
	}
	t.Error("processes that keep nothing lost nothing")
}

func TestBenchRunsEachStore(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := (bench{time: 100 * time.Millisecond, rounds: 1, size: 100, behind: 100}).run(t.Context(), isolate.OnDisk(t), &out); err != nil {
		t.Fatal(err)
	}
	for _, store := range append(stores, again) {
		if n := strings.Count(out.String(), "| "+store+" |"); n != len(clients)+1 {
			t.Errorf("%s is in %d lines:\n%s", store, n, &out)
		}
	}
}
