package crash

import (
	"os"
	"path/filepath"
	"testing"
)

// An attack's files may lie in either directory: the one that the workload opened, or the one that its name led to.
func TestAttackIsSurveyedInBothDirectories(t *testing.T) {
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	p := attackedPlace{dir: at("dir"), place: at("dir"), victim: at("victim"), link: at("link"),
		targets: []Target{{ID: 0, Path: "a", Object: true}, {ID: 1, Path: "b", Object: true}}}
	if err := p.prepare(); err != nil {
		t.Fatal(err)
	}
	if entry, err := os.Readlink(p.link); err != nil || entry != p.victim {
		t.Fatalf("the link leads to %q, %v", entry, err)
	}
	write := func(name string, id uint32, n uint64) {
		t.Helper()
		if err := os.WriteFile(at(name), Record{ID: id, N: n, Size: 100}.Append(nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("dir/a", 0, 3)
	write("victim/a", 0, 5)
	write("victim/b.tmp", 1, 1)
	write("dir/b", 1, 2)
	p.exchange() // survey ends it
	found, err := p.survey()
	if err != nil || p.violation != nil {
		t.Fatal(err, p.violation)
	}
	if found.N[0] != 5 || found.N[1] != 2 || found.Temporaries != 1 {
		t.Errorf("found %v and %d temporaries; want versions 5 and 2, and 1", found.N, found.Temporaries)
	}
	if p.exchanged {
		t.Error("the directory's name still leads to the other one")
	}
}
