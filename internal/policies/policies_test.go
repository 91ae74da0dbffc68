package policies

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// limited says which limits there are, by name.
func limited(byTime, byBytes bool) string {
	return map[[2]bool]string{{false, false}: "none", {true, false}: "time", {false, true}: "bytes", {true, true}: "both"}[[2]bool{byTime, byBytes}]
}

// TestEveryPairOccurs derives the choices of each case from its policy, and looks for each pair.
func TestEveryPairOccurs(t *testing.T) {
	cases := Pairs()
	met := map[[2]string]bool{}
	for i, c := range cases {
		p := c.Policy
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		sync := []string{"never", "close", limited(p.Sync.Every > 0, p.Sync.Bytes > 0), "group", "each"}[p.Sync.Mode]
		names := []string{"sync " + sync, "buffer " + p.Buffer.String(), "shape " + string(c.Shape)}
		if p.Buffer > 0 {
			names = append(names, "flush "+limited(p.FlushEvery > 0, p.FlushBytes > 0))
		}
		for _, a := range names {
			for _, b := range names {
				met[[2]string{a, b}] = true
			}
		}
		if slices.Contains(cases[:i], c) {
			t.Errorf("%v is there twice", c)
		}
	}
	choices := [][]string{
		{"flush none", "flush time", "flush bytes", "flush both"},
		{"sync never", "sync close", "sync group", "sync each", "sync time", "sync bytes", "sync both"},
		{"buffer 0", "buffer 64B", "buffer 4KiB"},
		{"shape small", "shape large", "shape mixed", "shape enqueue"},
	}
	for i := range choices {
		for _, as := range choices[:i] {
			for _, a := range as {
				for _, b := range choices[i] {
					if possible := b != "buffer 0" || a[:5] != "flush"; met[[2]string{a, b}] != possible {
						t.Errorf("%s and %s occur together: %v, want %v", a, b, !possible, possible)
					}
				}
			}
		}
	}
	// Each of 7 syncs needs a case without a buffer, and one with each of 4 flushes.
	if len(cases) < 35 || len(cases) > 40 {
		t.Errorf("%d cases, want little more than 35", len(cases))
	}
	if !slices.Equal(cases, Pairs()) {
		t.Error("another call returns others")
	}
	t.Log(cases)
	if got, want := (Case{holdfast.Durable(), Mixed}).String(), "buffer=64KiB,sync=group/mixed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
