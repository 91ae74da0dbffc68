package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/holdfast-go/holdfast"

// made is a directory for what several tests use. It is removed when all have ended.
var made string

// TestMain runs the tests in the root of the repository.
func TestMain(m *testing.M) {
	err := os.Chdir(filepath.Join("..", ".."))
	if err == nil {
		made, err = os.MkdirTemp("", "holdfast-tree-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(made)
	os.Exit(code)
}

// A floor is a set of packages, by directory. A package may import its own floor, unless the floor's
// packages stand apart, and the floors below.
type floor struct {
	name  string
	dirs  string // "x/..." is x and all below it; the longest that fits decides
	apart bool   // each takes the floors below and none of its own
}

// floors is the house from the ground up: the library, the command, and the laboratory with the
// development tools.
var floors = []floor{
	{"ground", "internal/...", false},
	{"holdfast", ". stats internal/policies", false},
	{"library", "files filecopy readahead rotate wal", true},
	{"programs of the pages", "docs/...", true},
	{"crash engine", "internal/crash/... provetest", false},

	{"measuring", "cmd/internal/measure/...", false},
	{"catalogue", "internal/catalogue", false},
	{"what commands share", "cmd/internal/cli cmd/internal/place cmd/internal/compare cmd/internal/run", false},
	{"commands", "cmd/internal/...", true},

	{"laboratory", "cmd/internal/lab/... cmd/drill/...", false},
	{"commands of the laboratory", "cmd/internal/study cmd/internal/gen cmd/internal/usermode", true},
	{"main", "cmd/holdfast", false},
}

// forTests are packages that only tests import, and their dependencies.
const forTests = "internal/crashsuite internal/isolate internal/filetest internal/acltest internal/stoptest cmd/internal/measure/studytest"

// floorOf returns the index in floors of a directory, or -1.
func floorOf(dir string) int {
	at, longest := -1, -1
	for i, f := range floors {
		for _, pattern := range strings.Fields(f.dirs) {
			base, below := strings.CutSuffix(pattern, "/...")
			if (dir == base || below && strings.HasPrefix(dir, base+"/")) && len(base) > longest {
				at, longest = i, len(base)
			}
		}
	}
	return at
}

// mayImport returns why a package of ours may not import another, or nil.
func mayImport(from, to string) error {
	a, b := floorOf(from), floorOf(to)
	switch {
	case a < 0 || b < 0:
		return fmt.Errorf("%s or %s stands on no floor", from, to)
	case b > a:
		return fmt.Errorf("%s (%s) imports %s (%s), which is above it", from, floors[a].name, to, floors[b].name)
	case a == b && floors[a].apart:
		return fmt.Errorf("%s imports %s: packages of the floor %q import none another", from, to, floors[a].name)
	}
	return nil
}

// A listed is a part of a package's go list -json.
type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// goList lists the packages of the library and of the command as they are on a system.
func goList(t *testing.T, system string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...", "./cmd/...")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64") // there is no darwin/386
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v", system, err)
	}
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// dirOf turns the import path of one of our packages into its directory.
func dirOf(importPath string) (dir string, ours bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func TestArrowsGoDownOnly(t *testing.T) {
	tests := strings.Fields(forTests)
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, p := range goList(t, system) {
			dir, _ := dirOf(p.ImportPath)
			ofTests := slices.Contains(tests, dir)
			for _, path := range p.Imports {
				to, ours := dirOf(path)
				switch {
				case !ours:
				case slices.Contains(tests, to):
					if !ofTests {
						t.Errorf("%s: %s imports %s, which is for tests", system, dir, to)
					}
				case ofTests:
				default:
					if err := mayImport(dir, to); err != nil {
						t.Errorf("%s: %v", system, err)
					}
				}
			}
			for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
				to, _ := dirOf(path)
				if strings.HasPrefix(to, "cmd/internal/lab/") && floorOf(dir) < floorOf(to) && dir != "cmd/internal/measure/report" {
					t.Errorf("%s: the tests of %s import %s; of the product's only those of report look at all studies", system, dir, to)
				}
			}
		}
	}
}

// TestTheLibraryTakesOnlySys holds the promise that who imports the library gets golang.org/x/sys and
// nothing else, and that every module which somebody fetches builds without our checkout.
func TestTheLibraryTakesOnlySys(t *testing.T) {
	for _, dir := range fetched(t) {
		mod := goMod(t, dir)
		if len(mod.Replace) > 0 {
			t.Errorf("%s/go.mod has a replace, which go install refuses", dir)
		}
		for _, r := range mod.Require {
			if dir == "." && r.Path != "golang.org/x/sys" {
				t.Errorf("the library requires %s", r.Path)
			}
		}
	}
}

// fetched are the directories of the modules that somebody may fetch.
func fetched(t *testing.T) []string {
	t.Helper()
	adapters, err := filepath.Glob("adapters/*/go.mod")
	if err != nil || len(adapters) == 0 {
		t.Fatalf("no adapters: %v", err)
	}
	dirs := []string{".", "cmd"}
	for _, file := range adapters {
		dirs = append(dirs, filepath.ToSlash(filepath.Dir(file)))
	}
	return dirs
}

// A modFile is a part of the output of go mod edit -json.
type modFile struct {
	Module  struct{ Path string }
	Go      string
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct{ Old struct{ Path string } }
}

func goMod(t *testing.T, dir string) (file modFile) {
	t.Helper()
	cmd := exec.Command("go", "mod", "edit", "-json", filepath.Join(dir, "go.mod"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &file)
	}
	if err != nil {
		t.Fatalf("go mod edit for %s: %v", dir, err)
	}
	return file
}

// TestLittleIsLinked: a program that imports the library for a Writer links nothing that it does not
// need, who proves his own code links no workload of ours, and the command has no tests in it: of package testing it has the bubble of
// fake time alone, for prove.
func TestLittleIsLinked(t *testing.T) {
	check := func(name string, never ...string) {
		t.Helper()
		cmd := exec.Command("go", "list", "-deps", name)
		cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for _, path := range strings.Fields(string(out)) {
			if slices.Contains(never, path) {
				t.Errorf("%s links %s", name, path)
			}
		}
	}
	check(".", "encoding/json", "math/big", "net", "os/exec", "text/template")
	check("./provetest", module+"/files", module+"/filecopy", module+"/rotate", module+"/wal")
	check("./cmd/holdfast", "encoding/gob", "encoding/xml", "go/ast", "html/template", "image/png")
	cmd := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./cmd/holdfast")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(path, module) && path != module+"/cmd/internal/prove" && slices.Contains(strings.Fields(imports), "testing") {
			t.Errorf("%s imports testing; prove alone does, for its bubble of fake time", path)
		}
	}
}

// startsItself finds what starts the program that runs, which in a test is the test.
var startsItself = regexp.MustCompile(`os\.Executable\(|"/proc/self/exe"|os\.Args\[0\]|stoptest\.Each\(|command\.Child\(`)

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
		if refused, hasTests := refuses[dir]; hasTests && !refused && dir != filepath.Join("dev", "tree") {
			t.Errorf("%s starts its own program, and no test of %s calls isolate.RefusesUnknownCommand", file, dir)
		}
	}
	if len(starts) == 0 {
		t.Error("no directory starts its own program: what looks for them is out of date")
	}
}

// TestTreeNamesNoMachine looks through every file that git keeps for the directories
// and the proxies of the machine that somebody happened to work on.
func TestTreeNamesNoMachine(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("this is not a git checkout: git ls-files: %v", err)
	}
	// Written so that this file does not match itself.
	private := regexp.MustCompile("(^|[^.\\w])/(wo" + "rk|ro" + "ot|Users|home/[a-z]+|tmp/[a-z]+)/" + "|local" + "host:[0-9]|artif" + "actory")
	var hosts []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if u, err := url.Parse(os.Getenv(name)); err == nil && u.Hostname() != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	for _, file := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || strings.HasSuffix(file, "go.sum") {
			continue // deleted and not yet committed; hashes
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			if found := private.FindString(line); found != "" {
				t.Errorf("%s:%d names %q, a directory or host of one machine", file, i+1, strings.TrimSpace(found))
			}
			for _, host := range hosts {
				if strings.Contains(line, host) {
					t.Errorf("%s:%d names this machine's proxy %s", file, i+1, host)
				}
			}
		}
	}
}
