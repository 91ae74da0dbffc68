package holdfast

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestStatsTellTheStateOfTheHandles(t *testing.T) {
	f := &Files{}
	f.handles.init(nil, 8)
	f.handles.stats = handleStats{hits: 1, misses: 2, evictions: 3}
	f.handles.reserve()
	if err := f.handles.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.retries.Store(4)
	if got, want := f.Stats(), (FilesStats{Hits: 1, Misses: 2, Evictions: 3, Open: 1, InFlight: 1, Retries: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	f.handles.release()
	f.handles.end()
	if got := f.Stats(); got.Open != 0 || got.InFlight != 0 {
		t.Errorf("all is given back, and %+v", got)
	}
}

func TestStatsCountWholeFilesAndTheirSyncs(t *testing.T) {
	f, err := NewFiles(FilesOptions{Policy: EachDurable()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if _, err := f.Write(t.Context(), dir+"/"+name, []byte("x"), ModeCreate); err != nil {
			t.Fatal(err)
		}
	}
	// Two files, and their folder after each.
	if got, want := f.Stats(), (FilesStats{Files: 2, Syncs: 4, Hits: 1, Misses: 1, Open: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestStatsHaveAKeyForEachCount(t *testing.T) {
	text, err := json.Marshal(FilesStats{})
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]int64
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	if n := reflect.TypeFor[FilesStats]().NumField(); len(keys) != n {
		t.Errorf("%d fields, and the keys %v", n, keys)
	}
	for key := range keys {
		if key[0] < 'a' || key[0] > 'z' {
			t.Errorf("the key %s is a name of Go's", key)
		}
	}
}
