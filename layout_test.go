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
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/holdfast-go/holdfast"

// A room is what one package may import: rooms of this module by their directory,
// and other people's packages by the beginning of their path.
type room struct {
	rooms  string
	others string
}

// rooms is the layout: arrows go down only. A package or an import that is not
// in it is a mistake, or a decision to be made here first. "." is the root. An
// others of "…" leaves the choice of libraries to the room.
var rooms = map[string]room{
	".":         {"internal/age internal/deadline internal/distinct internal/entry internal/commit internal/notify internal/reuse internal/spin internal/sys stats", "golang.org/x/sys"},
	"files":     {". internal/age internal/deadline internal/distinct internal/commit internal/notify " + shared + " internal/retry stats", "golang.org/x/sys"},
	"filecopy":  {". " + shared + " internal/retry", "golang.org/x/sys"},
	"readahead": {". internal/sys", ""},
	"stats":     {"", ""},
	"wal":       {". internal/age internal/deadline internal/durable internal/commit internal/keyed internal/notify internal/sys internal/vfs stats", ""},

	"drill":          {"", ""},
	"cmd/drill":    {lab("diy"), ""},
	"drill/gobuffer": {"", ""},
	"provetest":      {lab("prove syscallfault"), ""},
	"rotate":         {". internal/durable internal/keyed internal/notify internal/permission internal/sys internal/vfs stats", ""},

	"internal/vfs":        {"internal/sys", ""},
	"internal/keyed":      {"", ""},
	"internal/handles":    {"internal/keyed internal/sys internal/vfs", ""},
	"internal/retry":      {"internal/handles", "golang.org/x/sys"},
	"internal/durable":    {"internal/keyed internal/sys internal/vfs", ""},
	"internal/entry":      {"internal/durable internal/keyed internal/sys internal/vfs", ""},
	"internal/reuse":      {"", ""},
	"internal/temporary":  {"internal/handles internal/keyed internal/sys internal/vfs", ""},
	"internal/permission": {"", ""},
	"internal/age":        {"", ""},
	"internal/deadline":   {"", ""},
	"internal/distinct":   {"", ""},
	"internal/commit":     {"internal/sys", ""},
	"internal/spin":       {"internal/sys", ""},
	"internal/mountinfo":  {"", ""},
	"internal/notify":     {"", ""},
	"internal/sys":        {"internal/mountinfo", "golang.org/x/sys"},
	"internal/fault":      {"internal/sys", ""},
	"internal/isolate":    {"internal/mountinfo", "golang.org/x/sys"},
	"internal/own":        {"internal/sys", ""},
	"internal/crashsuite": {". internal/fault internal/isolate internal/policies internal/sys internal/vfs", "golang.org/x/sys"},
	"internal/policies":   {".", ""},
	"internal/mutants":    {"", ""},

	"internal/filetest":     {"internal/durable internal/keyed internal/sys", ""},
	"internal/panictest":    {"", ""},
	"internal/racetest":     {"", ""},
	"internal/acltest":      {"", "golang.org/x/sys"},
	"internal/terminaltest": {"", "golang.org/x/sys"},
	"internal/stoptest":     {"internal/isolate " + lab("volume"), "golang.org/x/sys"},

	"internal/lab/stat":     {"", ""},
	"internal/lab/amount":   {"", ""},
	"internal/lab/chart":    {"", "…"},
	"internal/lab/curve":    {". " + lab("chart figure result study"), "…"},
	"internal/lab/datagen":  {"", ""},
	"internal/lab/cstdio":   {"drill", ""},
	"internal/lab/diy":      {"drill", ""},
	"internal/lab/timing":   {"", ""},
	"internal/lab/plot":     {lab("chart timing"), ""},
	"internal/lab/probe":    {"internal/mountinfo internal/sys", "golang.org/x/sys"},
	"internal/lab/machine":  {"internal/mountinfo internal/sys", ""},
	"internal/lab/volume":   {"internal/mountinfo internal/own internal/sys", "…"},
	"internal/lab/group":    {"", ""},
	"internal/lab/uml":      {"internal/own internal/sys " + lab("volume"), "…"},
	"internal/lab/fuselog":  {"", "golang.org/x/sys"},
	"internal/lab/powercut": {". " + lab("fuselog") + " " + lab("prove") + " " + lab("volume"), "golang.org/x/sys"},
	"internal/lab/prove":    {". filecopy files internal/fault internal/own internal/sys internal/vfs rotate " + lab("group syscallfault") + " internal/policies wal", "golang.org/x/sys"},
	"internal/lab/result":   {". internal/own " + lab("machine"), "…"},
	"internal/lab/trial":    {". internal/own internal/sys internal/vfs " + lab("amount machine probe result stat") + " stats", "…"},
	"internal/lab/study":    {". " + lab("amount chart machine probe result stat trial"), "…"},
	"internal/lab/figure":   {". " + lab("machine result stat"), ""},
	"internal/lab/advise":   {". " + lab("figure result stat"), "…"},
	"internal/lab/costloss": {". " + lab("advise chart figure machine result"), ""},
	"internal/lab/report":   {". " + lab("advise chart figure machine page result stat study study/all"), "…"},
	"internal/lab/page":     {lab("chart"), ""},

	"internal/lab/fleet":        {". " + lab("figure machine result stat"), ""},
	"internal/lab/fleet/show":   {". " + lab("amount figure fleet machine page report stat study"), "…"},
	"internal/lab/syscallfault": {"", "golang.org/x/sys"},

	// What studies share and the sweeps, which are no studies.
	"internal/lab/study/sweep":      {". " + lab("result stat study trial"), ""},
	"internal/lab/study/copysource": {lab("trial"), ""},

	// Each study takes the core, and none another. The list is above them all.
	"internal/lab/study/studytest": {"internal/isolate " + lab("result study trial"), ""},
	"internal/lab/study/bytewise":  {". readahead " + lab("cstdio diy probe result stat study trial"), "…"},
	"internal/lab/study/copying":   {". internal/sys " + lab("chart cstdio machine result stat study study/copysource timing trial"), "…"},
	"internal/lab/study/costs":     {"internal/sys " + lab("amount chart machine probe result stat study trial"), "…"},
	"internal/lab/study/latency":   {". " + lab("amount chart probe result stat study trial"), "…"},
	"internal/lab/study/lines":     {". internal/sys " + lab("chart probe result stat study trial"), "…"},
	"internal/lab/study/locks":     {lab("chart machine result study trial"), "…"},
	"internal/lab/study/manyfiles": {". files internal/sys internal/vfs " + lab("chart result study trial"), "…"},
	"internal/lab/study/reads":     {". readahead " + lab("chart probe result stat study trial"), "…"},
	"internal/lab/study/zerocopy":  {". filecopy " + lab("probe result study study/copysource trial"), "…"},
	"internal/lab/study/all": {". " + lab("result study study/sweep trial "+
		"study/bytewise study/copying study/costs study/latency study/lines study/locks study/manyfiles study/reads study/zerocopy"), ""},

	// The commands take cli, and none another, but for bench, which compares with baselines. Where a
	// run's trials are is place's to know; of User-Mode Linux only usermode and the root command know.
	"cmd/holdfast": {cmd("cli compare copy fleet gen place prove report run serve usermode volumes wal write") + " . files " +
		lab("advise figure machine powercut probe report result study study/all study/sweep syscallfault uml volume"), "…"},
	"cmd/holdfast/internal/cli":      {"internal/own " + lab("amount curve figure report result study/all"), "…"},
	"cmd/holdfast/internal/write":    {cmd("cli") + " . files readahead internal/sys", "…"},
	"cmd/holdfast/internal/copy":     {cmd("cli") + " . filecopy internal/sys", "…"},
	"cmd/holdfast/internal/gen":      {cmd("cli") + " . internal/own internal/sys " + lab("amount datagen probe"), "…"},
	"cmd/holdfast/internal/report":   {cmd("cli") + " " + lab("advise costloss figure page plot prove report result stat study/all study/copying timing"), "…"},
	"cmd/holdfast/internal/wal":      {cmd("cli") + " . internal/permission internal/sys wal", "…"},
	"cmd/holdfast/internal/volumes":  {cmd("cli") + " internal/own " + lab("trial volume"), "…"},
	"cmd/holdfast/internal/live":     {cmd("cli"), "…"},
	"cmd/holdfast/internal/compare":  {cmd("cli") + " internal/own " + lab("figure report result stat"), "…"},
	"cmd/holdfast/internal/fleet":    {cmd("cli") + " . " + lab("fleet fleet/show machine report result"), "…"},
	"cmd/holdfast/internal/web":      {"", ""},
	"cmd/holdfast/internal/serve":    {cmd("cli web") + " " + lab("figure fleet fleet/show machine page report result stat study/all"), "…"},
	"cmd/holdfast/internal/prove":    {cmd("cli place") + " . internal/sys " + lab("powercut") + " " + lab("prove"), "…"},
	"cmd/holdfast/internal/place":    {cmd("cli") + " . internal/sys " + lab("machine result study study/all study/sweep trial volume"), "…"},
	"cmd/holdfast/internal/usermode": {cmd("cli place") + " " + lab("machine result study study/all study/sweep trial uml volume"), "…"},
	"cmd/holdfast/internal/run":      {cmd("cli compare live place") + " . internal/own " + lab("advise diy figure machine report result stat study study/all study/sweep trial volume"), "…"},
}

// shared is the rooms that files and filecopy stand on.
const shared = "internal/durable internal/handles internal/keyed internal/permission internal/sys internal/temporary internal/vfs"

// lab returns the directories of the laboratory's rooms of these names.
func lab(names string) string { return below("internal/lab/", names) }

// cmd returns the directories of the command's rooms of these names.
func cmd(names string) string { return below("cmd/holdfast/internal/", names) }

func below(dir, names string) string {
	rooms := strings.Fields(names)
	for i, name := range rooms {
		rooms[i] = dir + name
	}
	return strings.Join(rooms, " ")
}

// testRooms is what every room's tests may import besides. It has processes of a test's own, the files
// that fail, the statistics that judge, and what a fair measurement needs. It also has file systems of
// a test's own, and what tests of several rooms share.
var testRooms = "internal/acltest internal/crashsuite internal/fault internal/filetest internal/isolate internal/panictest internal/policies internal/racetest internal/stoptest internal/terminaltest " +
	lab("stat trial volume study/studytest")

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

// standard reports whether an import is the standard library's: no dot in the
// first element of its path.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// allowed reports whether a room in directory may import importPath.
func (r room) allowed(importPath string) bool {
	if dir, ours := dirOf(importPath); ours {
		return slices.Contains(strings.Fields(r.rooms), dir)
	}
	return standard(importPath) || slices.ContainsFunc(strings.Fields(r.others), func(prefix string) bool {
		return prefix == "…" || importPath == prefix || strings.HasPrefix(importPath, prefix+"/")
	})
}

func TestImportsFollowTheLayout(t *testing.T) {
	open := map[string]bool{}
	for _, system := range systems {
		for _, p := range goList(t, system) {
			dir, _ := dirOf(p.ImportPath)
			r, ok := rooms[dir]
			if !ok {
				t.Errorf("%s is not in the table of rooms", dir)
				continue
			}
			open[dir] = true
			for _, i := range p.Imports {
				if !r.allowed(i) {
					t.Errorf("%s: %s may not import %s", system, dir, i)
				}
			}
			tests := room{r.rooms + " " + testRooms + " " + dir, r.others + " " + testOthers}
			switch dir {
			case ".":
				tests.rooms += " wal" // the commands that the pages show read a log
			case "internal/spin":
				tests.rooms += " internal/lab/probe" // calls are counted
			}
			for _, i := range slices.Concat(p.TestImports, p.XTestImports) {
				if !tests.allowed(i) {
					t.Errorf("%s: the tests of %s may not import %s", system, dir, i)
				}
			}
		}
	}
	for dir := range rooms {
		if !open[dir] {
			t.Errorf("the table has the room %s, but no system has its package", dir)
		}
	}
}

func TestEveryRoomHasATest(t *testing.T) {
	for _, p := range goList(t, "linux") {
		if strings.HasSuffix(p.ImportPath, "test") { // support: what uses it tests it
			continue
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			t.Errorf("%s has no test: a room opens with its first test", p.ImportPath)
		}
	}
}

// sharedModules are those that other modules here need as much as the main one.
var sharedModules = []string{"golang.org/x/sys", "github.com/HdrHistogram/hdrhistogram-go"}

func TestUsersPullInNothingOfOtherModules(t *testing.T) {
	main := directModules(t, ".")
	others, err := filepath.Glob("adapters/*")
	if err != nil || len(others) == 0 {
		t.Fatalf("no adapters: %v", err)
	}
	for _, other := range append(others, "browser", "deploy", "peers", "tools", "tools/release") {
		for _, m := range directModules(t, other) {
			if slices.Contains(main, m) && !slices.Contains(sharedModules, m) {
				t.Errorf("go.mod requires %s, which is for %s only", m, other)
			}
		}
	}
}

// directModules returns what a module requires itself: its direct requirements,
// and the modules of its tools.
func directModules(t *testing.T, dir string) (paths []string) {
	t.Helper()
	cmd := exec.Command("go", "mod", "edit", "-json", path.Join(dir, "go.mod"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod edit for %s: %v", dir, err)
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

// TestDirectoriesAreCalledSo holds the word of the field against the other one.
func TestDirectoriesAreCalledSo(t *testing.T) {
	other := regexp.MustCompile(`(?i)\w*fold` + `er\w*`)
	files, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("not a clone of the repository:", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(files), "\x00"), "\x00") {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // removed, and not committed yet
		}
		if found := other.Find(text); found != nil {
			t.Errorf("%s says %s", name, found)
		}
		if other.MatchString(name) {
			t.Errorf("the file %s", name)
		}
	}
}

// TestCommandLinksNoMoreThanItNeeds: what is linked is read from the disk at each start, and some packages
// fill tables before main. The bound is little above what was reached.
func TestCommandLinksNoMoreThanItNeeds(t *testing.T) {
	linked := linkedBy(t, "./cmd/holdfast")
	others := slices.DeleteFunc(slices.Clone(linked), func(name string) bool { return strings.HasPrefix(name, module) })
	if most := 170; len(others) > most {
		t.Errorf("the command links %d packages besides its own, want at most %d", len(others), most)
	}
	for _, never := range []string{"encoding/gob", "encoding/xml", "image/png", "go/ast", "html/template", "testing"} {
		if slices.Contains(linked, never) {
			t.Errorf("the command links %s", never)
		}
	}
	for _, name := range linked {
		for _, never := range []string{"gonum.org/", "codeberg.org/go-fonts", "github.com/cheggaaa/pb", "github.com/golang/freetype"} {
			if strings.HasPrefix(name, never) {
				t.Errorf("the command links %s", name)
			}
		}
	}
	t.Logf("%d packages besides its own", len(others))
}

// TestImportersOfTheRootLinkLittle: a program that imports the library for a Writer links nothing else.
func TestImportersOfTheRootLinkLittle(t *testing.T) {
	linked := linkedBy(t, ".")
	if most := 85; len(linked) > most {
		t.Errorf("the root links %d packages, want at most %d", len(linked), most)
	}
	for _, never := range []string{"encoding/json", "math/big", "net", "os/exec", "text/template"} {
		if slices.Contains(linked, never) {
			t.Errorf("the root links %s", never)
		}
	}
}

// linkedBy lists a package with all that it imports, directly or not.
func linkedBy(t *testing.T, name string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", name)
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}
