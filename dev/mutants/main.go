// Command mutants plants faults, one at a time, and reports whether the tests find them. A fault is a small
// file
//
//	dev/mutants/ROOM/NAME.patch
//
// Its first line describes the fault. Its second names the package whose tests should find it, and a pattern
// of the tests to run first. A diff follows. The sources are patched in a copy, which go test takes by its
// -overlay: the tree is never touched.
//
//	go -C dev run ./mutants                    all, in some hours
//	go -C dev run ./mutants -n 6 -seed 7       six of those that apply, drawn
//	go -C dev run ./mutants -run 'wal/.*lock'  whose name matches
//	go -C dev run ./mutants -prove 45s         those of dev/planted, which holdfast prove is to find in that time
//
// A patch that no longer applies is counted; the reader of that count mends or deletes it. The exit code is 1 if
// more than one fault in twenty survives, and more than two.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 0, "plant this number of faults, drawn from those that apply; 0 is all")
	seed := flag.Uint64("seed", 1, "of the draw")
	pattern := flag.String("run", "", "only faults whose room/name matches")
	prove := flag.Duration("prove", 0, "plant the faults of dev/planted, which break promises, and look for each with holdfast prove for this time")
	flag.Parse()
	dir, finds := "mutants", planter.plant
	if *prove > 0 {
		dir, finds = ".", func(p planter, m mutant) (string, error) { return p.prove(m, *prove) }
		*pattern = "planted/.*(?:" + *pattern + ")"
	}
	ok, err := run(os.Stdout, "..", dir, *n, *seed, *pattern, finds)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run plants faults of dir in the tree below root, and looks for each.
func run(out io.Writer, root, dir string, n int, seed uint64, pattern string, finds func(planter, mutant) (by string, err error)) (ok bool, err error) {
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		return false, err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	if err := os.Chmod(scratch, 0o755); err != nil { // some tests start their program as another user
		return false, err
	}
	p := planter{scratch: scratch}
	if p.root, err = filepath.Abs(root); err != nil {
		return false, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.patch"))
	if err == nil && len(files) == 0 {
		err = errors.New("no patches here; run it as: go -C dev run ./mutants")
	}
	if err != nil {
		return false, err
	}
	var applying []mutant
	var stale []string
	for _, file := range files {
		m, err := read(dir, file)
		if err != nil {
			return false, err
		}
		if !chosen.MatchString(m.name) {
			continue
		}
		if _, err := p.patched(m); err != nil {
			stale = append(stale, m.name)
			continue
		}
		applying = append(applying, m)
	}
	apply := len(applying)
	if n > 0 {
		draw := rand.New(rand.NewPCG(seed, 0))
		draw.Shuffle(len(applying), func(i, j int) { applying[i], applying[j] = applying[j], applying[i] })
		applying = applying[:min(n, len(applying))]
	}
	planted, caught := 0, 0
	for _, m := range applying {
		by, err := finds(p, m)
		if err != nil {
			fmt.Fprintf(out, "not known %s: %v\n", m.name, err)
			continue
		}
		planted++
		switch by {
		case "":
			fmt.Fprintf(out, "survived  %s: %s\n", m.name, m.what)
		default:
			caught++
			fmt.Fprintf(out, "caught    %s: %s\n", m.name, by)
		}
	}
	for _, name := range stale {
		fmt.Fprintf(out, "no longer applies: %s\n", name)
	}
	fmt.Fprintf(out, "%d of %d faults caught (seed %d); %d patches apply, %d no longer\n", caught, planted, seed, apply, len(stale))
	return planted-caught <= max(2, planted/20), nil
}

// A mutant is a fault.
type mutant struct {
	name  string   // ROOM/NAME
	what  string   // the behaviour it breaks
	pkg   string   // the directory of the tests, from the root: ./wal
	tests string   // a pattern of the tests that run first, or empty
	files []string // that it changes, from the root
	file  string   // of the patch
}

var (
	header  = regexp.MustCompile(`^(\S[^\n]*)\ntests: (\./\S*)(?: (\S+))?\n--- a/`)
	changes = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`)
)

func read(dir, file string) (mutant, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return mutant{}, err
	}
	head := header.FindStringSubmatch(string(text))
	if head == nil {
		return mutant{}, fmt.Errorf("%s: want what it breaks, then tests: ./PACKAGE [PATTERN], then a diff", file)
	}
	m := mutant{what: head[1], pkg: head[2], tests: head[3]}
	name, err := filepath.Rel(dir, file)
	if err != nil {
		return mutant{}, err
	}
	m.name = strings.TrimSuffix(filepath.ToSlash(name), ".patch")
	for _, change := range changes.FindAllStringSubmatch(string(text), -1) {
		m.files = append(m.files, change[1])
	}
	m.file, err = filepath.Abs(file)
	return m, err
}

// A planter plants faults of the tree in root.
type planter struct{ root, scratch string }

// patched writes the changed files of a mutant and returns the overlay for go that names them.
func (p planter) patched(m mutant) (overlay string, err error) {
	dir := filepath.Join(p.scratch, "tree")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, name := range m.files {
		text, err := os.ReadFile(filepath.Join(p.root, name))
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644)); err != nil {
			return "", err
		}
		replace[filepath.Join(p.root, name)] = to
	}
	apply := exec.Command("git", "apply", "-C1", m.file)
	apply.Dir, apply.Env = dir, append(os.Environ(), "GIT_DIR="+filepath.Join(p.scratch, "none"), "GIT_WORK_TREE="+dir)
	if out, err := apply.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(p.scratch, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// plant runs the tests with a fault, first the tests that know its code, and returns the test that failed.
func (p planter) plant(m mutant) (by string, err error) {
	overlay, err := p.patched(m)
	if err != nil {
		return "", err
	}
	program, err := p.build(m, overlay)
	if err != nil {
		return "", fmt.Errorf("it can't be built: %w", err)
	}
	if m.tests != "" {
		// Tests that stop file systems, or make each kind, run only with all.
		if by, err = p.fails(m, program, overlay, "-test.timeout=2m", "-test.run="+m.tests, "-test.skip=StopOf|EachFileSystem"); by != "" || err != nil {
			return by, err
		}
	}
	return p.fails(m, program, overlay, "-test.timeout=8m")
}

// notKnown is the exit code of prove where some verdicts were not made.
const notKnown = 4

// prove runs holdfast prove with a fault, and returns the first that it said of it.
func (p planter) prove(m mutant, within time.Duration) (by string, err error) {
	overlay, err := p.patched(m)
	if err != nil {
		return "", err
	}
	program := filepath.Join(p.scratch, "holdfast")
	build := exec.Command("go", "build", "-overlay="+overlay, "-o", program, "./holdfast")
	build.Dir = filepath.Join(p.root, "cmd")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it can't be built: %w: %s", err, out)
	}
	cmd := exec.Command(program, "prove", "--time", within.String(), "--dir", p.scratch)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	last := ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if last = lines.Text(); by == "" && says.MatchString(last) {
			by = last
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if by != "" || err == nil || errors.As(err, &exit) && exit.ExitCode() == notKnown {
		return by, nil
	}
	return "", fmt.Errorf("holdfast prove: %w: %s", err, last)
}

// says is a line of prove that names a broken promise, or that it ends with: the library panicked in it.
var says = regexp.MustCompile(`^(?:holdfast: \w+[^:]*, \S+ under .*: |panic: )`)

var (
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	running = regexp.MustCompile(`panic: test timed out after [^\n]*\n\s*running tests:\n\s*([^\s/]+)`)
	stack   = regexp.MustCompile(`\.(Test\w+)\(`)
	panics  = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`)
)

// fails returns what failed in tests, again by itself and not without the fault, or "". A test that
// fails only because the machine is busy sees nothing.
func (p planter) fails(m mutant, program, overlay string, flags ...string) (by string, err error) {
	out, err := p.test(m, program, overlay, flags...)
	if err == nil {
		return "", nil
	}
	for _, name := range []*regexp.Regexp{running, failed, stack} {
		if found := name.FindSubmatch(out); found != nil {
			by = string(found[1])
			break
		}
	}
	if panicked := p.panicIn(m, out); by == "" && panicked != "" { // in a goroutine that no test is named for
		if out, err := p.test(m, program, overlay, flags...); err == nil || p.panicIn(m, out) == "" {
			return "", nil
		}
		return panicked, p.sound(m, flags...)
	}
	if by == "" {
		return "", fmt.Errorf("its tests ended with %w and named no test:\n%s", err, out)
	}
	alone := []string{"-test.timeout=2m", "-test.run=^" + by + "$"}
	if _, err := p.test(m, program, overlay, alone...); err == nil {
		return "", nil
	}
	return by, p.sound(m, alone...)
}

// sound runs tests without the fault.
func (p planter) sound(m mutant, flags ...string) error {
	program, err := p.build(m, "")
	if err != nil {
		return err
	}
	if out, err := p.test(m, program, "", flags...); err != nil {
		return fmt.Errorf("its tests fail without the fault too:\n%s", out)
	}
	return nil
}

// panicIn returns the panic that ended tests in a package that the mutant changes, of the root in a file of it, or "".
func (p planter) panicIn(m mutant, out []byte) string {
	at := panics.FindIndex(out)
	if at == nil || bytes.HasPrefix(out[at[0]:], []byte("panic: test timed out")) {
		return ""
	}
	for _, name := range m.files {
		in := path.Dir(filepath.ToSlash(name)) + "/"
		if in == "./" { // the root's directory has any name
			in = name + ":"
		}
		if bytes.Contains(out[at[1]:], []byte("/"+in)) {
			return string(out[at[0]:at[1]])
		}
	}
	return ""
}

// of returns the directory of the module and the package of a mutant's tests.
func (p planter) of(m mutant) (module, pkg string) {
	if strings.HasPrefix(m.pkg, "./adapters/") {
		return filepath.Join(p.root, m.pkg), "."
	}
	return p.root, m.pkg
}

// build makes the program of a mutant's tests, with a fault if there is an overlay. It is linked once, however often it runs.
func (p planter) build(m mutant, overlay string) (program string, err error) {
	program = filepath.Join(p.scratch, "sound.test")
	if overlay != "" {
		program = filepath.Join(p.scratch, "faulty.test")
	}
	module, pkg := p.of(m)
	cmd := exec.Command("go", "test", "-vet=off", "-ldflags=-s", "-c", "-o", program, pkg)
	cmd.Dir, cmd.Env = module, withOverlay(overlay)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
}

// withOverlay is the environment in which go takes a mutant's sources, if there is an overlay.
func withOverlay(overlay string) []string {
	return append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
}

// test runs the short tests of a mutant's package, as go test runs them. Programs that the tests build have
// the fault too.
func (p planter) test(m mutant, program, overlay string, flags ...string) ([]byte, error) {
	temporary := filepath.Join(p.scratch, "tmp")
	if err := errors.Join(os.MkdirAll(temporary, 0o777), os.Chmod(temporary, 0o777|fs.ModeSticky)); err != nil {
		return nil, err
	}
	module, pkg := p.of(m)
	cmd := exec.Command(program, append([]string{"-test.short", "-test.failfast", "-test.count=1", "-test.paniconexit0"}, flags...)...)
	cmd.Dir, cmd.Env = filepath.Join(module, pkg), append(withOverlay(overlay), "TMPDIR="+temporary)
	cmd.WaitDelay = time.Minute // what a test started may live on, and hold the output
	return cmd.CombinedOutput()
}
