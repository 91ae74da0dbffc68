// Command platforms holds the packages of the current directory against systems other than this one:
// each must type-check there with its tests. Packages with other files there than here must pass go
// vet.
//
//	platforms OS/ARCH[,OS/ARCH]... PACKAGE...
//
// With this system and GOTOOLCHAIN it holds them against the standard library of another Go.
//
// It reads the source of all dependencies in place of compiling them. A first build of one system
// takes a minute of two CPUs, because it compiles the standard library and every dependency for it.
// This takes some seconds. It does not find what only a compiler and a linker can find.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/asmdecl"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/composite"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/defers"
	"golang.org/x/tools/go/analysis/passes/directive"
	"golang.org/x/tools/go/analysis/passes/errorsas"
	"golang.org/x/tools/go/analysis/passes/ifaceassert"
	"golang.org/x/tools/go/analysis/passes/loopclosure"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/sigchanyzer"
	"golang.org/x/tools/go/analysis/passes/stdmethods"
	"golang.org/x/tools/go/analysis/passes/stringintconv"
	"golang.org/x/tools/go/analysis/passes/structtag"
	"golang.org/x/tools/go/analysis/passes/testinggoroutine"
	"golang.org/x/tools/go/analysis/passes/tests"
	"golang.org/x/tools/go/analysis/passes/unmarshal"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/packages"
)

// analyzers are go vet's that need no facts of other packages. The others (printf,
// lostcancel and so on) would read every dependency, and ask what does not depend on the system.
var analyzers = []*analysis.Analyzer{
	asmdecl.Analyzer, assign.Analyzer, atomic.Analyzer, bools.Analyzer, buildtag.Analyzer, composite.Analyzer, copylock.Analyzer, defers.Analyzer,
	directive.Analyzer, errorsas.Analyzer, ifaceassert.Analyzer, loopclosure.Analyzer, nilfunc.Analyzer, shift.Analyzer, sigchanyzer.Analyzer,
	stdmethods.Analyzer, stringintconv.Analyzer, structtag.Analyzer, testinggoroutine.Analyzer, tests.Analyzer, unmarshal.Analyzer,
	unreachable.Analyzer, unsafeptr.Analyzer, unusedresult.Analyzer,
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "platforms: it takes systems and packages, such as: platforms windows/arm64,darwin/arm64 ./...")
		os.Exit(2)
	}
	here, err := filesHere(os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "platforms:", err)
		os.Exit(1)
	}
	holds := true
	for _, platform := range strings.Split(os.Args[1], ",") {
		fmt.Println("--", platform)
		found, err := faultsOn(platform, here, os.Args[2:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "platforms:", err)
			os.Exit(1)
		}
		holds = holds && found == 0
	}
	if !holds {
		os.Exit(1)
	}
}

// withoutBodies parses a file of a dependency. Nothing here depends on its functions' bodies.
func withoutBodies(files *token.FileSet, name string, source []byte) (*ast.File, error) {
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return file, err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			f.Body.List = nil
		}
	}
	return file, nil
}

// filesHere returns the files of the packages on this system, by the packages' IDs.
func filesHere(patterns []string) (map[string][]string, error) {
	here, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedCompiledGoFiles, Tests: true, Env: append(os.Environ(), "CGO_ENABLED=0")}, patterns...)
	files := map[string][]string{}
	for _, p := range here {
		files[p.ID] = p.CompiledGoFiles
	}
	return files, err
}

// faultsOn reports how many faults the packages have on a platform, and prints each. A package with
// the same files there as here is vetted here.
func faultsOn(platform string, here map[string][]string, patterns []string) (int, error) {
	system, processor, ok := strings.Cut(platform, "/")
	if !ok {
		return 0, fmt.Errorf("%q is no system and processor; write it like windows/arm64", platform)
	}
	dependencies, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return 0, fmt.Errorf("go env: %w", err)
	}
	config := &packages.Config{
		Mode:  packages.LoadAllSyntax | packages.NeedModule,
		Tests: true,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0"),
		ParseFile: func(files *token.FileSet, name string, source []byte) (*ast.File, error) {
			for dir := range strings.Lines(string(dependencies)) {
				if strings.HasPrefix(name, strings.TrimSpace(dir)+string(filepath.Separator)) {
					return withoutBodies(files, name, source)
				}
			}
			return parser.ParseFile(files, name, source, parser.ParseComments|parser.AllErrors|parser.SkipObjectResolution)
		},
	}
	loaded, err := packages.Load(config, patterns...)
	if err != nil {
		return 0, err
	}
	if len(loaded) == 0 {
		return 0, fmt.Errorf("no package is %q", patterns)
	}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		if p.Module == nil || !p.Module.Main { // the bodies' imports are now unused
			p.Errors = slices.DeleteFunc(p.Errors, func(e packages.Error) bool { return e.Kind == packages.TypeError })
		}
		p.IllTyped = false
	})
	if faults := packages.PrintErrors(loaded); faults > 0 {
		return faults, nil
	}
	loaded = slices.DeleteFunc(loaded, func(p *packages.Package) bool {
		same, found := here[p.ID]
		return found && slices.Equal(same, p.CompiledGoFiles)
	})
	graph, err := checker.Analyze(analyzers, loaded, nil)
	if err != nil {
		return 0, err
	}
	faults := 0
	for action := range graph.All() {
		if action.Err != nil {
			return 0, fmt.Errorf("%v: %w", action, action.Err)
		}
		if action.IsRoot {
			faults += len(action.Diagnostics)
		}
	}
	return faults, graph.PrintText(os.Stdout, -1)
}
