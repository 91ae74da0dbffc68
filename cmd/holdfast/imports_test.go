package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTheLaboratoryIsALeaf: only main and the laboratory's own commands import it. Of other tests those of
// report do, which look at the tables of all studies.
func TestTheLaboratoryIsALeaf(t *testing.T) {
	t.Parallel()
	const module, lab = "github.com/holdfast-go/holdfast/cmd/", "internal/lab"
	own := map[string]bool{"holdfast": true, "drill/check": true, "internal/study": true, "internal/usermode": true}
	for _, system := range []string{"linux", "darwin", "windows"} {
		list := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{range .TestImports}} test:{{.}}{{end}}{{range .XTestImports}} test:{{.}}{{end}}`, module+"...")
		list.Env = append(list.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("%s: %v", system, err)
		}
		found := 0
		for line := range strings.Lines(string(out)) {
			name, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
			name = strings.TrimPrefix(name, module)
			if name == lab || strings.HasPrefix(name, lab+"/") {
				continue
			}
			for path := range strings.FieldsSeq(imports) {
				path, isTest := strings.CutPrefix(path, "test:")
				if path = strings.TrimPrefix(path, module); path != lab && !strings.HasPrefix(path, lab+"/") {
					continue
				}
				if found++; !own[name] && !(isTest && name == "internal/measure/report") {
					t.Errorf("%s: %s imports %s", system, name, path)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: nobody imports the laboratory: %.200s", system, out)
		}
	}
}
