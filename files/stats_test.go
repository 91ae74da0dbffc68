//go:build go1.25

package files

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/stats"
)

func TestStatsReportTheStateOfTheHandles(t *testing.T) {
	f := &Set{}
	f.handles.Init(nil, 8)
	f.handles.Stats = handles.HandleStats{Hits: 1, Misses: 2, Evictions: 3}
	f.handles.Reserve()
	if err := f.handles.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.retries.Store(4)
	if got, want := f.Stats(), (Stats{Hits: 1, Misses: 2, Evictions: 3, Open: 1, InFlight: 1, Retries: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	f.handles.Release()
	f.handles.End()
	if got := f.Stats(); got.Open != 0 || got.InFlight != 0 {
		t.Errorf("all is given back, and %+v", got)
	}
}

func TestStatsCountWholeFilesAndTheirSyncs(t *testing.T) {
	f, err := New(Options{Policy: holdfast.EachDurable()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if _, err := f.WriteFile(t.Context(), dir+"/"+name, []byte("x"), Create); err != nil {
			t.Fatal(err)
		}
	}
	// Two files, and their directory after each.
	got := f.Stats()
	got.NoJournal = 0 // depends on the file system
	if want := (Stats{Counts: stats.Counts{Syncs: 4}, Files: 2, Hits: 1, Misses: 1, Open: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestStatsHaveAKeyForEachCount(t *testing.T) {
	text, err := json.Marshal(Stats{})
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	if n := reflect.TypeFor[Stats]().NumField() - 1 + reflect.TypeFor[stats.Counts]().NumField(); len(keys) != n {
		t.Errorf("%d fields, and the keys %v", n, keys)
	}
	for key := range keys {
		if key[0] < 'a' || key[0] > 'z' {
			t.Errorf("the key %s is a name of Go's", key)
		}
	}
}
