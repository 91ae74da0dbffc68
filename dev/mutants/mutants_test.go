package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	plant  = flag.Bool("mutants", false, "plant the faults and run the tests that are to catch them, for an hour or two")
	only   = flag.String("mutants.only", "", "plant only the faults whose whole number matches this pattern")
	jobs   = flag.Int("mutants.jobs", 2, "how many to plant at the same time")
	update = flag.Bool("update", false, "write docs/mutants.md anew; rows of faults that were not planted stay as they are")
)

// A mutant is a fault that is planted in a file of this module.
type mutant struct {
	number string // as the table shows it; it stays when others come or go
	what   string // what the fault does
	file   string // from the root of the module
	old    string // stands exactly once in the file
	new    string // and is replaced with this
	tests  string // pattern of the tests that are run first; "": all at once
	pkg    string // that has these tests; "": the file's own

	also       []edit // further changes, where one is not enough
	equivalent string // why no test can catch it
	removed    string // what became of its code, for a fault that can't be planted any more
}

// An edit is a change of one file.
type edit struct{ file, old, new string }

const (
	// firstLimit and wholeLimit end tests that hang. By themselves all tests of a package
	// take less than a tenth of these.
	firstLimit = 2 * time.Minute
	wholeLimit = 8 * time.Minute
	// slowTests run only with all of a package: they stop file systems, or use each kind.
	slowTests = "StopOf|EachFileSystem"
	// leastCaught is the share of the faults that the tests must catch.
	leastCaught = 0.95
	// confirmations is how often a test that failed is tried again until it fails again.
	confirmations = 3
)

func (m mutant) edits() []edit {
	if m.removed != "" {
		return nil
	}
	return append([]edit{{m.file, m.old, m.new}}, m.also...)
}

func (m mutant) dir() string {
	if m.pkg != "" {
		return m.pkg
	}
	return filepath.ToSlash(filepath.Dir(m.file))
}

func all() []mutant {
	return slices.Concat(writerMutants, filesMutants, logMutants, figureMutants, otherMutants)
}

// mutate returns what the files of a mutant hold with its fault, by their names.
func (m mutant) mutate(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range m.edits() {
		text, ok := files[e.file]
		if !ok {
			var err error
			text, err = os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		}
		if n := bytes.Count(text, []byte(e.old)); n != 1 {
			return nil, fmt.Errorf("its text stands %d times in %s, want once:\n%s", n, e.file, e.old)
		}
		files[e.file] = bytes.Replace(text, []byte(e.old), []byte(e.new), 1)
	}
	return files, nil
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestEveryMutantCanBePlanted holds the table to the sources: a change of a line that
// a fault is planted in must look at the fault too.
func TestEveryMutantCanBePlanted(t *testing.T) {
	root, seen := moduleRoot(t), map[string]bool{}
	for _, m := range all() {
		if seen[m.number] {
			t.Errorf("mutant %s stands twice in the table", m.number)
		}
		seen[m.number] = true
		if m.number == "" || m.what == "" || strings.ContainsAny(m.what, "|\n") {
			t.Errorf("mutant %q needs a number, and words on one line without a bar: %q", m.number, m.what)
		}
		files, err := m.mutate(root)
		if err != nil {
			t.Errorf("mutant %s (%s): %v", m.number, m.what, err)
			continue
		}
		for name, text := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("mutant %s (%s) is no Go: %v", m.number, m.what, err)
			}
		}
		if _, err := regexp.Compile(m.tests); err != nil {
			t.Errorf("mutant %s: %v", m.number, err)
		}
	}
}

// TestMutants plants the faults.
func TestMutants(t *testing.T) {
	if !*plant {
		t.Skip("it plants faults for an hour or two, and only with -mutants; docs/mutants.md says how")
	}
	if _, ok := t.Deadline(); ok {
		t.Fatal("it takes longer than a test may by itself; add -timeout 0")
	}
	pattern, err := regexp.Compile("^(?:" + *only + ")$")
	if err != nil {
		t.Fatal(err)
	}
	var chosen []mutant
	for _, m := range all() {
		if *only == "" || pattern.MatchString(m.number) {
			chosen = append(chosen, m)
		}
	}
	p := &planter{root: moduleRoot(t), scratch: t.TempDir(), clean: map[string]string{}}
	if err := os.Chmod(filepath.Dir(p.scratch), 0o755); err != nil { // see mkdir
		t.Fatal(err)
	}
	results := make([]outcome, len(chosen))
	slots := make(chan struct{}, max(1, *jobs))
	var running sync.WaitGroup
	var publishing sync.Mutex
	for i, m := range chosen {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			results[i] = p.try(t.Context(), m)
			t.Log(row(m, results[i]))
			if *update { // at once: a run that is ended keeps what it has found
				publishing.Lock()
				defer publishing.Unlock()
				p.publish(t, chosen[i:i+1], results[i:i+1])
			}
		})
	}
	running.Wait()
	var planted, caught int
	for i, r := range results {
		switch {
		case r.err != nil:
			t.Errorf("mutant %s (%s): %v", chosen[i].number, chosen[i].what, r.err)
		case r.word == isCaught || r.word == hangs:
			planted, caught = planted+1, caught+1
		case r.word == notCaught:
			planted++
		}
	}
	t.Logf("%d planted, %d caught", planted, caught)
	if float64(caught) < leastCaught*float64(planted) {
		t.Errorf("the tests catch %d of %d faults, want %.0f %%", caught, planted, 100*leastCaught)
	}
}

// An outcome is what became of a fault.
type outcome struct {
	word string
	by   string // the test that failed, or why none could
	test string // its name
	took time.Duration
	err  error // it could not be planted
}

const (
	isCaught     = "caught"
	hangs        = "caught by a hang"
	notCaught    = "**not caught**"
	isEquivalent = "equivalent"
	isRemoved    = "removed"
	notRun       = "not run"
)

// A planter plants mutants of the module in root.
type planter struct {
	root, scratch string

	mu    sync.Mutex
	clean map[string]string // the tests of a package without a fault, which are built once
}

// passes reports whether a test passes without the fault, here and now: else its failure
// says nothing.
func (p *planter) passes(ctx context.Context, m mutant, test string) error {
	binary, err := p.withoutFault(ctx, m)
	if err != nil {
		return err
	}
	for range confirmations {
		if p.run(ctx, m, binary, "", "^"+test+"$", firstLimit).word == notCaught {
			return nil
		}
	}
	return fmt.Errorf("%s fails without the fault too", test)
}

// withoutFault builds the tests of a mutant's package as they are.
func (p *planter) withoutFault(ctx context.Context, m mutant) (binary string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if binary, ok := p.clean[m.dir()]; ok {
		return binary, nil
	}
	dir, err := p.mkdir()
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "clean.test")
	if err := p.build(ctx, m, binary, "-overlay="); err != nil {
		return "", err
	}
	p.clean[m.dir()] = binary
	return binary, nil
}

// mkdir makes a directory in which any user may run what is built: some tests do.
func (p *planter) mkdir() (string, error) {
	dir, err := os.MkdirTemp(p.scratch, "mutant")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return dir, err
}

func (p *planter) build(ctx context.Context, m mutant, binary, overlay string) error {
	dir, pkg := p.root, "./"+m.dir()
	if strings.HasPrefix(m.dir(), "adapters/") { // each is a module of its own
		dir, pkg = filepath.Join(p.root, m.dir()), "."
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", overlay, "-o", binary, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("it can't be built: %w\n%s", err, out)
	}
	return nil
}

// try plants a mutant and runs the tests that are to catch it: first those that know
// its code, then the whole package.
func (p *planter) try(ctx context.Context, m mutant) outcome {
	if m.removed != "" {
		return outcome{word: isRemoved, by: m.removed}
	}
	scratch, err := p.mkdir()
	if err != nil {
		return outcome{err: err}
	}
	defer os.RemoveAll(scratch)
	overlay, err := p.overlay(m, scratch)
	if err != nil {
		return outcome{err: err}
	}
	binary := filepath.Join(scratch, "mutant.test")
	if err := p.build(ctx, m, binary, "-overlay="+overlay); err != nil {
		return outcome{err: err}
	}
	if m.equivalent != "" {
		return outcome{word: isEquivalent, by: m.equivalent}
	}
	run := func(tests string, limit time.Duration) outcome {
		return p.confirmed(ctx, m, binary, overlay, tests, limit)
	}
	var first outcome
	if m.tests != "" {
		if first = run(m.tests, firstLimit); first.word != notCaught {
			return first
		}
	}
	whole := run("", wholeLimit)
	whole.took += first.took
	return whole
}

// overlay writes the mutated files and says where they are, as go build reads it.
func (p *planter) overlay(m mutant, scratch string) (path string, err error) {
	files, err := m.mutate(p.root)
	if err != nil {
		return "", err
	}
	var list struct{ Replace map[string]string }
	list.Replace = map[string]string{}
	for name, text := range files {
		to := filepath.Join(scratch, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return "", err
		}
		list.Replace[filepath.Join(p.root, name)] = to
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	path = filepath.Join(scratch, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// confirmed is run, but a test must fail again by itself. One that fails, or runs out of time, only
// because the machine is busy catches nothing.
func (p *planter) confirmed(ctx context.Context, m mutant, binary, overlay, tests string, limit time.Duration) outcome {
	o := p.run(ctx, m, binary, overlay, tests, limit)
	if o.test == "" {
		return o
	}
	for range confirmations {
		again := p.run(ctx, m, binary, overlay, "^"+o.test+"$", limit)
		switch {
		case again.word == notCaught && o.word == hangs:
			return outcome{err: fmt.Errorf("its tests had not ended after %v, but %s passes by itself; is the machine busy?", limit, o.test)}
		case again.word != notCaught:
			if err := p.passes(ctx, m, o.test); err != nil {
				return outcome{err: err}
			}
			again.took = o.took
			return again
		}
	}
	return outcome{word: notCaught, by: o.by + " failed, and not again", took: o.took}
}

// run runs tests with the fault. What they build themselves has it too.
func (p *planter) run(ctx context.Context, m mutant, binary, overlay, tests string, limit time.Duration) outcome {
	temporary := filepath.Join(filepath.Dir(binary), "tmp")
	if err := errors.Join(os.MkdirAll(temporary, 0o777), os.Chmod(temporary, 0o777|fs.ModeSticky)); err != nil {
		return outcome{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.short", "-test.failfast", "-test.timeout="+limit.String(), "-test.run="+tests)
	if tests == m.tests && tests != "" {
		cmd.Args = append(cmd.Args, "-test.skip="+slowTests)
	}
	cmd.Dir = filepath.Join(p.root, m.dir())
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary, strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay))
	cmd.WaitDelay = 10 * time.Second
	began := time.Now()
	out, err := cmd.CombinedOutput()
	o := verdict(out, err)
	o.took = time.Since(began)
	return o
}

var (
	failedTest  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	runningTest = regexp.MustCompile(`panic: test timed out after [^\n]*\n\s*running tests:\n\s*(\S+)`)
	panicWords  = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)$`)
	testInStack = regexp.MustCompile(`\.(Test\w+)\(`)
)

// verdict reads what the tests said.
func verdict(out []byte, err error) outcome {
	if bytes.Contains(out, []byte("testing: warning: no tests to run")) {
		return outcome{err: errors.New("its pattern matches no test")}
	}
	if err == nil {
		return outcome{word: notCaught}
	}
	if found := runningTest.FindSubmatch(out); found != nil {
		return outcome{word: hangs, test: string(found[1]), by: string(found[1])}
	}
	panics, found := panicWords.FindSubmatch(out), failedTest.FindSubmatch(out)
	if found == nil && panics != nil {
		found = testInStack.FindSubmatch(out)
	}
	switch {
	case found != nil && panics != nil:
		name, _, _ := strings.Cut(string(found[1]), "/")
		return outcome{word: isCaught, test: name, by: fmt.Sprintf("%s: panic: %.60s", name, panics[1])}
	case found != nil:
		name, _, _ := strings.Cut(string(found[1]), "/")
		return outcome{word: isCaught, test: name, by: name}
	case panics != nil:
		return outcome{word: isCaught, by: fmt.Sprintf("panic: %.60s", panics[1])}
	case errors.Is(err, context.DeadlineExceeded) || bytes.Contains(out, []byte("signal: killed")):
		return outcome{word: hangs, by: "its tests had to be killed"}
	}
	return outcome{err: fmt.Errorf("its tests ended with %w and named no test:\n%.2000s", err, out)}
}
