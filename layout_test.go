package holdfast_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/holdfast-go/holdfast"

// A room is what one package may import: rooms of this module by their folder,
// and other people's packages by the beginning of their path.
type room struct {
	rooms  string
	others string
}

// rooms is the layout: arrows go down only. A package or an import that is not
// in it is a mistake, or a decision to be made here first. "." is the root. An
// others of "…" leaves the choice of libraries to the room.
var rooms = map[string]room{
	".":                  {"internal/sys", "golang.org/x/sys"},
	"internal/mountinfo": {"", ""},
	"internal/sys":       {"internal/mountinfo", "golang.org/x/sys"},
	"internal/fault":     {"internal/sys", ""},
	"internal/stat":      {"", ""},
	"internal/apart":     {"internal/mountinfo", "golang.org/x/sys"},
	"internal/cstdio":    {"", ""},
	"internal/machine":   {"internal/mountinfo internal/sys", ""},
	"internal/result":    {". internal/machine", "…"},
	"internal/trial":     {". internal/result internal/machine internal/sys internal/stat", "…"},
	"internal/filler":    {"", ""},
	"internal/volume":    {"internal/mountinfo internal/sys", "…"},
	"internal/uml":       {"internal/sys internal/volume", "…"},
	"internal/timing":    {"", ""},
	"internal/panel":     {"internal/timing", "…"},
	"internal/study":     {". internal/result internal/stat internal/trial internal/machine internal/chart internal/cstdio internal/sys internal/timing", "…"},
	"internal/figure":    {". internal/result internal/stat internal/machine", ""},
	"internal/advise":    {". internal/result internal/stat internal/figure", "…"},
	"internal/chart":     {"", "…"},
	"internal/report":    {". internal/figure internal/result internal/stat internal/chart internal/advise internal/machine internal/study", "…"},
	"cmd/holdfast": {". internal/machine internal/result internal/trial internal/study internal/advise " +
		"internal/stat internal/figure internal/chart internal/report internal/volume internal/uml internal/timing internal/panel internal/filler internal/sys", "…"},
}

// testRooms is what every room's tests may import besides: processes of a test's own,
// the files that fail, the statistics that judge, what a fair measurement needs, and file systems of a
// test's own.
const testRooms = "internal/apart internal/fault internal/stat internal/trial internal/volume"

// testOthers is what every room's tests may import of other people's.
const testOthers = "golang.org/x/sys github.com/rogpeppe/go-internal"

var systems = []string{"linux", "darwin", "windows"}

// A listed package is a part of what go list -json says of one.
type listed struct {
	ImportPath   string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// goList lists this module's packages as they are on a system.
func goList(t *testing.T, system string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps=false", "-json", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+system)
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

// folderOf turns the import path of one of our packages into its folder.
func folderOf(importPath string) (folder string, ours bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// standard reports whether an import is the standard library's: no dot in the
// first element of its path.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// allowed reports whether a room in folder may import importPath.
func (r room) allowed(importPath string) bool {
	if folder, ours := folderOf(importPath); ours {
		return slices.Contains(strings.Fields(r.rooms), folder)
	}
	return standard(importPath) || slices.ContainsFunc(strings.Fields(r.others), func(prefix string) bool {
		return prefix == "…" || importPath == prefix || strings.HasPrefix(importPath, prefix+"/")
	})
}

func TestImportsFollowTheLayout(t *testing.T) {
	open := map[string]bool{}
	for _, system := range systems {
		for _, p := range goList(t, system) {
			folder, _ := folderOf(p.ImportPath)
			r, ok := rooms[folder]
			if !ok {
				t.Errorf("%s is not in the table of rooms", folder)
				continue
			}
			open[folder] = true
			for _, i := range p.Imports {
				if !r.allowed(i) {
					t.Errorf("%s: %s may not import %s", system, folder, i)
				}
			}
			tests := room{r.rooms + " " + testRooms + " " + folder, r.others + " " + testOthers}
			for _, i := range slices.Concat(p.TestImports, p.XTestImports) {
				if !tests.allowed(i) {
					t.Errorf("%s: the tests of %s may not import %s", system, folder, i)
				}
			}
		}
	}
	for folder := range rooms {
		if !open[folder] {
			t.Errorf("the table has the room %s, but no system has its package", folder)
		}
	}
}

func TestEveryRoomHasATest(t *testing.T) {
	for _, p := range goList(t, "linux") {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			t.Errorf("%s has no test: a room opens with its first test", p.ImportPath)
		}
	}
}

// shared are the modules that peers or tools need as much as the main module.
var shared = []string{"golang.org/x/sys", "github.com/HdrHistogram/hdrhistogram-go"}

func TestUsersPullInNothingOfPeersAndTools(t *testing.T) {
	main := directModules(t, ".")
	for _, other := range []string{"peers", "tools"} {
		for _, m := range directModules(t, other) {
			if slices.Contains(main, m) && !slices.Contains(shared, m) {
				t.Errorf("go.mod requires %s, which is for %s only", m, other)
			}
		}
	}
}

// directModules returns what a module requires itself: its direct requirements,
// and the modules of its tools.
func directModules(t *testing.T, folder string) (paths []string) {
	t.Helper()
	cmd := exec.Command("go", "mod", "edit", "-json", path.Join(folder, "go.mod"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod edit for %s: %v", folder, err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Require {
		isTool := func(tool struct{ Path string }) bool { return strings.HasPrefix(tool.Path, r.Path+"/") }
		if !r.Indirect || slices.ContainsFunc(file.Tool, isTool) {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// TestTreeNamesNoMachine looks through every file that git keeps for the folders
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
				t.Errorf("%s:%d names %q, a folder or host of one machine", file, i+1, strings.TrimSpace(found))
			}
			for _, host := range hosts {
				if strings.Contains(line, host) {
					t.Errorf("%s:%d names this machine's proxy %s", file, i+1, host)
				}
			}
		}
	}
}
