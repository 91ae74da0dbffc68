package holdfast_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
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
	".":         {"internal/age internal/deadline internal/distinct internal/entry internal/joinwindow internal/notify internal/reuse internal/spin internal/sys stats", "golang.org/x/sys"},
	"files":     {". internal/age internal/deadline internal/distinct internal/joinwindow internal/notify " + shared + " internal/retry stats", "golang.org/x/sys"},
	"filecopy":  {". " + shared + " internal/retry", "golang.org/x/sys"},
	"readahead": {". internal/sys", ""},
	"stats":     {"", ""},
	"wal":       {". internal/age internal/commit internal/deadline internal/durable internal/keyed internal/notify internal/sys internal/vfs stats", ""},

	"drill":          {"", ""},
	"drill/check":    {lab("diy"), ""},
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
	"internal/joinwindow": {"", ""},
	"internal/spin":       {"internal/sys", ""},
	"internal/mountinfo":  {"", ""},
	"internal/notify":     {"", ""},
	"internal/sys":        {"internal/mountinfo", "golang.org/x/sys"},
	"internal/fault":      {"internal/sys", ""},
	"internal/isolate":    {"internal/mountinfo", "golang.org/x/sys"},
	"internal/own":        {"internal/sys", ""},
	"internal/policies":   {".", ""},
	"internal/mutants":    {"", ""},

	"internal/filetest":     {"internal/durable internal/keyed internal/sys", ""},
	"internal/killtest":     {".", ""},
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
	"internal/lab/prove":    {". filecopy files internal/fault internal/own internal/sys internal/vfs rotate " + lab("group syscallfault") + " wal", "golang.org/x/sys"},
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
var testRooms = "internal/acltest internal/fault internal/filetest internal/isolate internal/killtest internal/panictest internal/racetest internal/stoptest internal/terminaltest " +
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

// The bounds of a package, beyond which a newcomer no longer knows it.
const (
	mostFiles = 25  // but for tests
	mostNames = 150 // package-level, on all systems together
)

// larger are the packages beyond a bound, each with the reason why it is.
var larger = map[string]string{
	"internal/sys": "most of it is one call a file and system; the calls of the library's copies are to be a package",

	"internal/lab/probe": "one call a file and system: 79 names",
}

// mostMethods is how many methods an interface may name itself: what it embeds has a thought
// of its own.
const mostMethods = 8

func TestInterfacesAreSmallEnoughToImplement(t *testing.T) {
	for directory := range rooms {
		files, err := filepath.Glob(filepath.Join(directory, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for name, methods := range interfacesOf(t, file) {
				if methods > mostMethods {
					t.Errorf("%s: the interface %s has %d methods of its own, more than %d: divide it", file, name, methods, mostMethods)
				}
			}
		}
	}
}

// interfacesOf counts the methods that each named interface of a file has itself.
func interfacesOf(t *testing.T, file string) map[string]int {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]int{}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if is, ok := spec.Type.(*ast.InterfaceType); ok {
				own[spec.Name.Name] = 0
				for _, m := range is.Methods.List {
					own[spec.Name.Name] += len(m.Names) // an embedded interface has none
				}
			}
		}
		return true
	})
	return own
}

// A size is what a package has.
type size struct{ files, names int }

func (s size) fits() bool { return s.files <= mostFiles && s.names <= mostNames }

func TestPackagesAreSmallEnoughToKnow(t *testing.T) {
	for directory := range rooms {
		s := sizeOf(t, directory)
		why, excepted := larger[directory]
		switch {
		case !s.fits() && !excepted:
			t.Errorf("%s has %d files and %d names, more than %d or %d: cut it, or say in larger why it is so", directory, s.files, s.names, mostFiles, mostNames)
		case s.fits() && excepted:
			t.Errorf("%s has %d files and %d names: it is no longer larger, as %q says", directory, s.files, s.names, why)
		}
	}
}

// TestRootIsTheFrontDoor holds the bounds of the package that a user reads first.
func TestRootIsTheFrontDoor(t *testing.T) {
	s := sizeOf(t, ".")
	lines, exported, fields := 0, 0, 0
	for _, file := range sources(t, ".") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range declared(f) {
			if ast.IsExported(name) {
				exported++
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && ast.IsExported(spec.Name.Name) {
				if is, ok := spec.Type.(*ast.StructType); ok {
					for _, field := range is.Fields.List {
						for _, name := range field.Names {
							if name.IsExported() {
								fields++
							}
						}
					}
				}
			}
			return true
		})
	}
	for _, b := range []struct {
		what     string
		is, most int
	}{{"files", s.files, 16}, {"lines", lines, 3000}, {"names", s.names, 80}, {"exported names", exported, 40}, {"exported fields", fields, 25}} {
		if b.is > b.most || b.is == 0 {
			t.Errorf("the root has %d %s, of at most %d", b.is, b.what, b.most)
		}
		t.Logf("%d %s", b.is, b.what)
	}
}

// TestSizesAreCounted counts what a package has by a small one that does not change.
func TestSizesAreCounted(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{
		"a_linux.go":  "package a\nconst x, _ = 1, 2\nfunc F() {}\nfunc init() {}\nfunc (T) M() {}\ntype T int\n",
		"a_other.go":  "//go:build !linux\n\npackage a\nconst x = 1\nvar y int\n",
		"a_test.go":   "package a\nfunc G() {}\n",
		"notes.txt":   "package a",
		"sub/sub.go":  "package sub\nfunc H() {}\n",
		"testdata/.x": "",
	} {
		file := filepath.Join(directory, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := sizeOf(t, directory), (size{files: 2, names: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// sizeOf counts the files of a package for all systems, and its names. Tests, methods and
// init are none.
func sizeOf(t *testing.T, directory string) size {
	t.Helper()
	s, names := size{}, map[string]bool{}
	for _, file := range sources(t, directory) {
		s.files++
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range declared(f) {
			names[name] = true
		}
	}
	delete(names, "_")
	delete(names, "init")
	s.names = len(names)
	return s
}

// sources returns the files of a package for all systems, but for its tests.
func sources(t *testing.T, directory string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

// declared returns the package-level names of a file.
func declared(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
			names = append(names, fn.Name.Name)
		}
		if group, ok := d.(*ast.GenDecl); ok {
			for _, spec := range group.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						names = append(names, id.Name)
					}
				}
			}
		}
	}
	return names
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
