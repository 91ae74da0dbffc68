package advise_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
)

func TestAdviceCautionsWhereTheFileSystemHasNoJournal(t *testing.T) {
	check := func(policy, journal string, want bool) {
		t.Helper()
		f := planted(plant{policy: policy, cpu: 100, rate: 2e6, p99: ms, sync: ms}.row())
		if err := json.Unmarshal([]byte(`{"machine":[{"name":"journal","value":"`+journal+`"}]}`), &f.Run.Header); err != nil {
			t.Fatal(err)
		}
		r, err := advise.Recommend(f, need(t, "rate>=50k/s"), advise.Load{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(words(t, r), "caution: the file system has no journal"); got != want {
			t.Errorf("%s, journal %s: cautions %v, want %v", policy, journal, got, want)
		}
	}
	check("buffer=64KiB,sync=500ms", "none", true)
	check("buffer=64KiB,sync=500ms", "yes", false)
	check("buffer=64KiB,sync=500ms", "unknown", false)
	check("buffer=64KiB", "none", false)
}
