package holdfast_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) { os.Exit(isolate.Tests{M: m}.Run()) }

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

// startsItself finds what starts the program that runs, which in a test is the test.
var startsItself = regexp.MustCompile(`os\.Executable\(|"/proc/self/exe"|os\.Args\[0\]|apart\.(Process|Mounts)\(|stoptest\.Each\(|command\.Child\(`)

// TestProgramsThatStartThemselvesRefuseUnknownCommands looks at every directory of this
// repository whose program, or whose tests, are started by themselves.
func TestProgramsThatStartThemselvesRefuseUnknownCommands(t *testing.T) {
	starts, refuses := map[string]string{}, map[string]bool{} // refuses has a directory only if it has tests
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		dir := filepath.Dir(path)
		if startsItself.Match(text) {
			starts[dir] = path
		}
		if strings.HasSuffix(path, "_test.go") {
			refuses[dir] = refuses[dir] || bytes.Contains(text, []byte("RefusesUnknownCommand(t)"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, file := range starts {
		if refused, hasTests := refuses[dir]; hasTests && !refused {
			t.Errorf("%s starts its own program, and no test of %s calls isolate.RefusesUnknownCommand", file, dir)
		}
	}
	if len(starts) < 5 {
		t.Errorf("only %d directories start their own program: %v", len(starts), starts)
	}
}
