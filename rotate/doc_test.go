package rotate_test

import (
	"os"
	"strings"
	"testing"
)

// TestPageShowsTheExample holds the page's first piece of Go to the one that runs.
func TestPageShowsTheExample(t *testing.T) {
	page, err := os.ReadFile("../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```go\n")
	shown, _, ok := strings.Cut(shown, "```\n")
	runs := strings.ReplaceAll(string(source), "\n\t", "\n")
	if !ok || shown == "" || !strings.Contains(runs, "\n"+shown) {
		t.Errorf("the example does not run what the page shows:\n%s", shown)
	}
}
