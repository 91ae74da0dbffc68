package machine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestComputers plants the files of each archive in testdata, and compares the description of that
// computer, and of the directory in "dir", with "want".
func TestComputers(t *testing.T) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	if len(archives) == 0 {
		t.Fatal("no archives in testdata")
	}
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{}
			var planted []txtar.File
			for _, f := range archive.Files {
				files[f.Name] = strings.TrimSuffix(string(f.Data), "\n")
				if f.Name != "want" {
					planted = append(planted, f)
				}
			}
			got := describe(everything(tree(files), files["dir"]))
			if *update {
				archive.Files = append(planted, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := files["want"] + "\n"; got != want {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
		})
	}
}

// everything returns all facts that are read from files.
func everything(h host, dir string) []Fact {
	facts := append(h.processor(), h.memory()...)
	facts = append(facts, h.limits()...)
	facts = append(facts, h.kernel()...)
	facts = append(facts, h.directory(dir)...)
	return append(facts, h.dirtySettings()...)
}

// describe lists the known facts, and the traits that hold.
func describe(facts []Fact) string {
	var b strings.Builder
	var unknown []string
	for _, f := range facts {
		if f.Value == Unknown {
			unknown = append(unknown, f.Name)
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	fmt.Fprintf(&b, "unknown: %s\n", strings.Join(unknown, ", "))
	_, stacked := ThinOrStacked(facts)
	fmt.Fprintf(&b, "virtual machine: %v, stacked: %v, frequency scales: %v, in memory: %v\n",
		InVirtualMachine(facts), stacked, FrequencyScales(facts), InMemory(facts))
	return b.String()
}
