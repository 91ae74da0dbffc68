package rotate_test

import (
	"os"
	"strings"
	"testing"
)

// TestPagesShowTheExample holds the first piece of Go of the README and of the page on logs to
// the one that runs. It has ten lines at most.
func TestPagesShowTheExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	runs := strings.ReplaceAll(string(source), "\n\t", "\n")
	for _, name := range []string{"../README.md", "../docs/logs.md"} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, shown, _ := strings.Cut(string(page), "```go\n")
		shown, _, ok := strings.Cut(shown, "```\n")
		if !ok || shown == "" || !strings.Contains(runs, "\n"+shown) || strings.Count(shown, "\n") > 10 {
			t.Errorf("%s: the example does not run what it shows:\n%s", name, shown)
		}
	}
}
