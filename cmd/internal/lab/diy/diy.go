// Package diy compiles, checks and times what a student wrote in C for the exercise in
// drill/.
//
// The checks run the student's functions in a process of their own, in which read(2) and
// write(2) fall short, are interrupted and fail. Each error is a [Fault], in plain words. It finds
// the C compiler in CC or on the PATH.
//
// Start with [Check] and [Build].
package diy

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/drill"
)

//go:embed c/*.c c/*.h
var harness embed.FS

// ErrNoCompiler reports that there is no C compiler.
var ErrNoCompiler = errors.New("there is no C compiler here: install gcc (Debian: apt-get install gcc libc6-dev), or name one in CC")

// A CompileError has the compiler's message about a file that it refused.
type CompileError struct{ Path, Text string }

func (e *CompileError) Error() string {
	return fmt.Sprintf("%s does not compile:\n%s", e.Path, e.Text)
}

// A Fault is something that the functions do wrong.
type Fault struct {
	Case string // what was tried, such as "short reads"
	Says string // the fault and its remedy, in words
}

func (f Fault) String() string { return f.Case + ": " + f.Says }

// Checked is the result of checking a file.
type Checked struct {
	Cases  int // how many were tried
	Faults []Fault
	Notes  []string // warnings of the compiler, and checks that could not run
}

// compiler returns the command of the C compiler.
func compiler() (string, error) {
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", ErrNoCompiler
}

// Missing says why nothing can be compiled here, or is empty.
func Missing() string {
	if runtime.GOOS == "windows" {
		return "the exercise needs a POSIX system"
	}
	if _, err := compiler(); err != nil {
		return err.Error()
	}
	return ""
}

// A workshop is a temporary directory with the harness, and a compiler.
type workshop struct{ dir, cc string }

func open() (w workshop, err error) {
	if w.cc, err = compiler(); err != nil {
		return w, err
	}
	if w.dir, err = os.MkdirTemp("", "holdfast-drill-"); err != nil {
		return w, err
	}
	for _, from := range []struct {
		files fs.FS
		glob  string
	}{{harness, "c/*"}, {drill.Sources, "c/*.h"}} {
		names, err := fs.Glob(from.files, from.glob)
		if err != nil {
			return w, w.close(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(from.files, name)
			if err == nil {
				err = os.WriteFile(filepath.Join(w.dir, path.Base(name)), text, 0o600)
			}
			if err != nil {
				return w, w.close(err)
			}
		}
	}
	return w, nil
}

func (w workshop) close(err error) error { return errors.Join(err, os.RemoveAll(w.dir)) }

// run runs the compiler and returns what it said.
func (w workshop) run(ctx context.Context, args ...string) (string, error) {
	all := append([]string{"-std=gnu11", "-g", "-U_FORTIFY_SOURCE", "-I", w.dir}, args...)
	out, err := exec.CommandContext(ctx, w.cc, all...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// compile makes a program of the student's file and one of the harness. It returns what the compiler warned of.
func (w workshop) compile(ctx context.Context, source, with, program string, flags ...string) (warned string, err error) {
	object, named := filepath.Join(w.dir, "student.o"), source
	if strings.HasPrefix(named, "-") {
		named = "./" + named // which is no option
	}
	student := append([]string{"-Wall", "-Wextra", "-fdiagnostics-color=never", "-include", filepath.Join(w.dir, "prelude.h")}, flags...)
	warned, err = w.run(ctx, append(student, "-c", "-o", object, named)...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
		return "", &CompileError{source, warned}
	}
	if err != nil {
		return "", err
	}
	said, err := w.run(ctx, append(flags, "-o", program, filepath.Join(w.dir, with), object)...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
		return "", &CompileError{source, said}
	}
	return warned, err
}

// Build compiles the functions in source with the loop that times them, to a new program.
func Build(ctx context.Context, source, program string) error {
	w, err := open()
	if err != nil {
		return err
	}
	_, err = w.compile(ctx, source, "time.c", program, "-O2")
	return w.close(err)
}

// sanitizers are the flags under which a program watches itself.
var sanitizers = []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}

// Check tries the functions in source, and returns all faults that it found.
func Check(ctx context.Context, source string) (Checked, error) {
	w, err := open()
	if err != nil {
		return Checked{}, err
	}
	found, err := w.check(ctx, source)
	return found, w.close(err)
}

func (w workshop) check(ctx context.Context, source string) (found Checked, err error) {
	if _, err := os.Stat(source); err != nil {
		return found, err
	}
	program := filepath.Join(w.dir, "check")
	warned, err := w.compile(ctx, source, "check.c", program, sanitizers...)
	if err == nil {
		// They may be installed and yet not run here.
		_, err = w.try(ctx, program, source, "1000000")
	}
	if err != nil && ctx.Err() == nil {
		if warned, err = w.compile(ctx, source, "check.c", program); err == nil {
			found.Notes = append(found.Notes, "the compiler's sanitizers do not work here (Debian has them in libgcc-*-dev): a write outside of the buffer may go unseen")
		}
	}
	if err != nil {
		return found, err
	}
	if warned != "" {
		found.Notes = append(found.Notes, "the compiler warns:\n"+warned)
	}
	for next := 0; ; {
		r, err := w.try(ctx, program, source, strconv.Itoa(next))
		if err != nil {
			return found, err
		}
		found.Cases = max(found.Cases, r.last+1)
		if r.fault.Says == "" {
			return found, nil
		}
		found.Faults = append(found.Faults, r.fault)
		if r.last == 0 {
			found.Notes = append(found.Notes, "fix this one first; the other cases were not tried")
			return found, nil
		}
		next = r.last + 1
	}
}

// A tried is how a process of the checker ended: with a fault in its last case, or with none.
type tried struct {
	last  int
	fault Fault
}

// patience is for a process that waits for something: a loop without an end is ended by the time that it computes.
const patience = 2 * time.Minute

// try runs the cases from a number on, in an empty directory.
func (w workshop) try(ctx context.Context, program, source, from string) (r tried, err error) {
	dir, err := os.MkdirTemp(w.dir, "files-")
	if err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(limited, program, dir, from)
	// A leak is no fault of the exercise, and LeakSanitizer needs rights that some machines withhold.
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0:color=never", "UBSAN_OPTIONS=print_stacktrace=0:color=never")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	ended := cmd.Run()
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	r.last = -1
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "case "); ok {
			number, name, _ := strings.Cut(text, " ")
			if r.last, err = strconv.Atoi(number); err != nil {
				return r, fmt.Errorf("the checker said %q", lines.Text())
			}
			r.fault = Fault{Case: name}
		} else if text, ok := strings.CutPrefix(lines.Text(), "wrong "); ok {
			r.fault.Says = text
		}
	}
	switch {
	case r.fault.Says != "" || ended == nil:
	case r.last < 0:
		return r, fmt.Errorf("the checker does not run here: %w: %s", ended, complaint.String())
	case limited.Err() != nil:
		r.fault.Says = fmt.Sprintf("it did not end within %v", patience)
	default:
		r.fault.Says = crash(complaint.String(), filepath.Base(source), ended)
	}
	return r, nil
}

// Lines that sanitizers print: AddressSanitizer's kind of error and its frames, and the errors
// of UndefinedBehaviorSanitizer.
func addressKind() *regexp.Regexp { return regexp.MustCompile(`AddressSanitizer:? ([A-Za-z-]+)`) }
func frame() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^ *#\d+ \S+ in (\w+) (?:.*/)?([^/\s:]+:\d+)`)
}
func undefined() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:.*/)?([^/\s:]+:\d+)(?::\d+)?: runtime error: (.*)$`)
}

// crash says in words why the process died.
func crash(report, file string, ended error) string {
	if m := undefined().FindStringSubmatch(report); m != nil {
		return fmt.Sprintf("%s has undefined behaviour: %s", m[1], m[2])
	}
	kind := addressKind().FindStringSubmatch(report)
	if kind == nil {
		return fmt.Sprintf("the program died: %v", ended)
	}
	for _, m := range frame().FindAllStringSubmatch(report, -1) {
		if strings.HasPrefix(m[2], file+":") {
			return fmt.Sprintf("%s touches memory that is not its own (%s), at %s", m[1], kind[1], m[2])
		}
	}
	return fmt.Sprintf("the program touches memory that is not its own (%s)", kind[1])
}

// A Timing has the times and counts of one run of a program of [Build].
type Timing struct {
	Open, Calls, Close time.Duration
	Made               int64  // calls that succeeded
	Ones, Twos         uint64 // of the bytes read: their sum, and the sum of the sums
}

// Time runs such a program: it reads or writes n bytes of the file at path, one a call.
func Time(ctx context.Context, program, direction, path string, n int64) (t Timing, err error) {
	cmd := exec.CommandContext(ctx, program, direction, path, strconv.FormatInt(n, 10))
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return t, fmt.Errorf("the program built from your file failed: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	if _, err := fmt.Sscan(string(out), &t.Open, &t.Calls, &t.Close, &t.Made, &t.Ones, &t.Twos); err != nil {
		return t, fmt.Errorf("the program built from your file printed %q: %w", out, err)
	}
	return t, nil
}

// String lists the notes, then the faults, a paragraph each.
func (c Checked) String() string {
	var b strings.Builder
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for _, f := range c.Faults {
		fmt.Fprintf(&b, "wrong: %s\n", f)
	}
	if len(c.Faults) == 0 {
		fmt.Fprintf(&b, "right: all %d cases\n", c.Cases)
	} else {
		fmt.Fprintf(&b, "wrong in %d of %d cases\n", len(c.Faults), c.Cases)
	}
	return b.String()
}
