package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// asCommand makes the test binary be the command itself.
const asCommand = "HOLDFAST_TEST_AS_COMMAND"

// asHog makes the test binary be a program that takes a whole CPU.
const asHog = "HOLDFAST_TEST_AS_HOG"

func TestMain(m *testing.M) {
	syscallfault.Launch()
	if os.Getenv(asHog) != "" {
		for sum := 1; sum != 0; sum |= 1 {
			sum *= 3
		}
	}
	// A first argument that is no flag is a command, with which a run starts its own program.
	if os.Getenv(asCommand) != "" || len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
	}
	testscript.Main(isolate.Tests{M: m}, map[string]func(){"holdfast": main})
}

func TestScripts(t *testing.T) {
	isolate.Once(t, isolate.Race)
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Files:               scripts(t),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           condition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":  code,
			"mount": mount,
			"cut":   cut,
			"head":  head,
			"zero":  zero,
			"swap":  swap,
			"empty": empty,
			"alike": alike,
			"text":  text,
		},
	})
}

// scripts are the files of the scripts. As an ordinary user those run again that name what a user may lack.
func scripts(t *testing.T) (files []string) {
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	asks := regexp.MustCompile(`root|mounts|chmod|permission|drop|remount`)
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if isolate.Pass() != isolate.Ordinary || asks.Match(text) {
			files = append(files, file)
		}
	}
	return files
}

// condition answers a script's conditions:
//   - [mounts]: whether mount(8) can mount a tmpfs here
//   - [root]
//   - [posix]: whether prove can cut the power of its model of POSIX
//   - [race]: whether this is a program with the race detector, which does not start
//     in User-Mode Linux
//   - [memory:DIR]: whether there is a directory in memory
func condition(name string) (bool, error) {
	dir, isMemory := strings.CutPrefix(name, "memory:")
	switch {
	case isMemory:
		info, err := os.Stat(dir)
		return err == nil && info.IsDir() && runtime.GOOS == "linux", nil
	case name == "race":
		return raceEnabled, nil
	case name == "mounts":
		return canMount(), nil
	case name == "root":
		return os.Geteuid() == 0, nil
	case name == "posix":
		device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		if err != nil {
			return false, nil
		}
		most, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
		return err == nil && strings.TrimSpace(string(most)) != "0" && runtime.GOOS == "linux", device.Close()
	}
	return false, errors.New("unknown condition " + name)
}

func canMount() bool {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "holdfast-mount-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "holdfast-test", dir).Run() != nil {
		return false
	}
	return exec.Command("umount", dir).Run() == nil
}

// code runs a command and wants an exit code, or one of several: code 3 holdfast bench …, code 0|4 …
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command args...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// mount makes a directory and mounts a tmpfs on it until the script ends: mount dir
// options.
func mount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mount dir options")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(ts.Exec("mount", "-t", "tmpfs", "-o", args[1], "holdfast-test", dir))
	ts.Defer(func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			ts.Logf("umount %s: %v", dir, err)
		}
	})
}

// cut takes bytes off the end of a file: cut file n.
func cut(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	info, err := os.Stat(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, info.Size()-int64(n)))
}

// head leaves the first lines of a file: head file n.
func head(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	lines := strings.SplitAfter(ts.ReadFile(args[0]), "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(lines[:n], "")), 0o644))
}

// text makes a file, of a text with the escapes of Go: text file 'a\r\n'.
func text(ts *testscript.TestScript, neg bool, args []string) {
	bytes, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(bytes), 0o644))
}

// swap puts a text in place of another where that is first: swap file old new.
func swap(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(ts.ReadFile(args[0]), args[1], args[2], 1)), 0o644))
}

// zero makes all bytes of a line NUL, but for its line feed: zero file n.
func zero(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	lines := strings.SplitAfter(ts.ReadFile(args[0]), "\n")
	lines[n-1] = strings.Repeat("\x00", len(lines[n-1])-1) + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(lines, "")), 0o644))
}

// empty wants a directory with nothing in it: empty dir.
func empty(ts *testscript.TestScript, neg bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if (len(entries) == 0) == neg {
		ts.Fatalf("%s holds %v", args[0], entries)
	}
}

// alike wants lines of a file that begin like each other: alike file prefix n.
func alike(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	got := strings.Count("\n"+ts.ReadFile(args[0]), "\n"+args[1])
	if (got == want) == neg {
		ts.Fatalf("%d lines of %s begin with %s", got, args[0], args[1])
	}
}

// A child is the command in a process of its own.
type child struct {
	*exec.Cmd
	stdout   bytes.Buffer
	pipe     io.Closer // of stderr
	stderr   *bufio.Reader
	reported strings.Builder
}

func startChild(t *testing.T, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startCommand(t, exec.Command(self, args...), nil)
}

// startCommand starts a call of this program's binary as the command.
func startCommand(t *testing.T, cmd *exec.Cmd, how *syscall.SysProcAttr) *child {
	t.Helper()
	c := &child{Cmd: cmd}
	c.Env, c.SysProcAttr = append(cmd.Environ(), asCommand+"=1"), how
	c.Stdout = &c.stdout
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.pipe, c.stderr = pipe, bufio.NewReader(pipe)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// until reads standard error until a line has the text.
func (c *child) until(t *testing.T, text string) {
	t.Helper()
	for {
		line, err := c.stderr.ReadString('\n')
		c.reported.WriteString(line)
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("%v before %q was stderr:\n%s", err, text, c.reported.String())
		}
	}
}

// groundLine is the line that names the directory where a run writes.
var groundLine = regexp.MustCompile(` in (\S*holdfast-bench-\d+) `)

// ground returns the directory where the run said that it writes.
func (c *child) ground(t *testing.T) string {
	t.Helper()
	found := groundLine.FindStringSubmatch(c.reported.String())
	if found == nil {
		t.Fatalf("no directory was stderr:\n%s", c.reported.String())
	}
	return found[1]
}

// exit waits for the command and returns its code.
func (c *child) exit(t *testing.T) int {
	t.Helper()
	rest, err := io.ReadAll(c.stderr)
	if err != nil {
		t.Fatal(err)
	}
	c.reported.Write(rest)
	err = c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

func skipWithoutSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process can't be sent an interrupt on Windows")
	}
}

// skipIfIgnored skips where what started the tests has a signal ignored, as nohup does:
// so do we then, and the processes that we start.
func skipIfIgnored(t *testing.T, s os.Signal) {
	if signal.Ignored(s) {
		t.Skipf("%v is ignored here", s)
	}
}

// exitBy is the exit code after a signal, as a shell reports it of a process that dies of it.
func exitBy(s os.Signal) int {
	return map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129}[s]
}

// TestInterruptLeavesTheResultsSoFarAndNothingElse interrupts when round 2 is
// announced: then round 1 is on disk.
func TestInterruptLeavesTheResultsSoFarAndNothingElse(t *testing.T) {
	skipWithoutSignals(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
			c := startChild(t, "bench", "--dir", dir, "--allow-tmpfs", "--time", "1s", "--rounds", "1000", "--writers", "2",
				"--policy", "buffer=4KiB", "--policy", "sync=group", "-o", file)
			c.until(t, "round 2 of 1000")
			if err := c.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if signal == syscall.SIGTERM { // timeout(1) sends it twice
				go func() {
					for c.Process.Signal(signal) == nil {
						runtime.Gosched()
					}
				}()
			}
			if code := c.exit(t); code != exitBy(signal) {
				t.Errorf("exit code %d:\n%s", code, c.reported.String())
			}
			checkInterrupted(t, c, dir, file)
		})
	}
}

func checkInterrupted(t *testing.T, c *child, dir, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := result.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if run.End == nil || run.End.State != result.Interrupted || run.Rounds() < 1 || run.Torn {
		t.Errorf("end %+v after %d rounds, torn %v", run.End, run.Rounds(), run.Torn)
	}
	if !strings.Contains(c.stdout.String(), "not complete: interrupted") {
		t.Errorf("the table is not marked:\n%s", c.stdout.String())
	}
	if !strings.Contains(c.reported.String(), "holdfast: interrupted after ") || !strings.Contains(c.reported.String(), "\nhint: ") {
		t.Errorf("stderr:\n%s", c.reported.String())
	}
	nothingIn(t, dir)
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left in %s", e.Name(), dir)
	}
}

func TestInterruptWhileCalibratingLeavesNothing(t *testing.T) {
	skipWithoutSignals(t)
	dir, directory := t.TempDir(), t.TempDir()
	c := startChild(t, "bench", "--dir", dir, "--allow-tmpfs", "-o", filepath.Join(directory, "results.jsonl"))
	c.until(t, "calibrating")
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(t); code != cli.ExitInterrupted || !strings.Contains(c.reported.String(), "interrupted before the first round was done") ||
		strings.Contains(c.reported.String(), "give -o") { // it was given
		t.Errorf("exit code %d:\n%s", code, c.reported.String())
	}
	nothingIn(t, dir)
	nothingIn(t, directory)
}

// help returns the help of a command.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var stdout bytes.Buffer
	if err := runCommand(t.Context(), append(args, "--help"), nil, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	return stdout.String()
}

// examples returns the command lines under "Examples:".
func examples(help string) []string {
	_, text, _ := strings.Cut(help, "\nExamples:\n")
	text, _, _ = strings.Cut(text, "\n\n")
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

var commands = []string{"", "bench", "advise", "audit", "prove", "write", "gen", "copy", "report", "compare", "fleet", "serve", "study", "volumes", "wal", "version", "completion", "man"}

func TestHelpNamesEveryCommand(t *testing.T) {
	all := append([]string{}, commandNames(newRoot())...)
	for _, name := range commands[1:] {
		found := false
		for _, have := range all {
			found = found || have == name
		}
		if !found || !strings.Contains(helpOf(t), "\n  "+name) {
			t.Errorf("%s is not in the help", name)
		}
	}
	if len(all) != len(commands)-1 {
		t.Errorf("the commands are %v, and the tests know %v", all, commands)
	}
}

// TestAdviseNamesWhatItLeavesOut has time for one policy. Whether that one meets the need depends
// on the disk.
func TestAdviseNamesWhatItLeavesOut(t *testing.T) {
	isolate.Once(t)
	var talk bytes.Buffer
	err := runCommand(t.Context(), []string{"advise", "--need", "loss<=200ms", "--dir", t.TempDir(), "--allow-tmpfs", "--time", "3s"}, nil, io.Discard, &talk)
	want := "holdfast: not measured, because 3s is too short for useful trials of them: "
	if _, left, ok := strings.Cut(talk.String(), want); !ok || !strings.Contains(left, "buffer=0,sync=each\n") {
		t.Errorf("%v\n%s", err, talk.String())
	}
}

// TestEveryHelpHasTwoExamples; that they run is a test of the module's docs.
func TestEveryHelpHasTwoExamples(t *testing.T) {
	for _, name := range commands {
		list := examples(helpOf(t, strings.Fields(name)...))
		if len(list) != 2 {
			t.Errorf("%q has %d examples", name, len(list))
		}
		for _, line := range list {
			if !strings.HasPrefix(line, "holdfast ") {
				t.Errorf("%s is not a call of holdfast", line)
			}
		}
	}
}
