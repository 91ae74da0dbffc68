package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestInterruptedCopyLeavesTheOldFileOrNone interrupts a copy that moves a byte a call,
// when it has begun.
func TestInterruptedCopyLeavesTheOldFileOrNone(t *testing.T) {
	skipWithoutSignals(t)
	t.Parallel()
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, bytes.Repeat([]byte("0123456789abcdef"), 4<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	check := func(old string, signal os.Signal, more ...string) {
		t.Helper()
		folder := t.TempDir()
		file := filepath.Join(folder, "x")
		if old != "" {
			if err := os.WriteFile(file, []byte(old), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		before := namesIn(t, folder)
		c := startChild(t, append([]string{"copy", source, file, "--method", "readwrite", "--buffer", "1B"}, more...)...)
		for len(namesIn(t, folder)) == len(before) {
			runtime.Gosched()
		}
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := c.exit(t); code != exitInterrupted || !strings.Contains(c.told.String(), "holdfast: interrupted after 0 files, ") ||
			!strings.Contains(c.told.String(), "\nhint: what was copied is whole, and nothing half is left; with --resume ") {
			t.Errorf("exit code %d:\n%s", code, c.told.String())
		}
		if strings.Contains(c.stdout.String(), "failed") {
			t.Errorf("what was under way is told as failed:\n%s", c.stdout.String())
		}
		got, _ := os.ReadFile(file)
		if after := namesIn(t, folder); string(got) != old || len(after) != len(before) {
			t.Errorf("%d bytes, want %q; %v", len(got), old, after)
		}
	}
	check("", os.Interrupt)
	check("", syscall.SIGTERM, "--policy", "atomic")
	check("as it was", os.Interrupt)
}

func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestCopyRefusalsHaveTheirExitCodes(t *testing.T) {
	check := func(c copying, totals holdfast.CopyTotals, held, err error, code int, sentence, hint string) {
		t.Helper()
		var told bytes.Buffer
		if got := tell(&told, c.refusal(totals, held, err)); got != code || told.String() != "holdfast: "+sentence+"\nhint: "+hint+"\n" {
			t.Errorf("exit code %d, %q", got, told.String())
		}
	}
	var none holdfast.CopyTotals
	failed := &holdfast.CopyError{Op: "read", Source: "a", Destination: "b", Offset: 512, Err: syscall.EIO}
	goesOn := copying{options: holdfast.CopyOptions{KeepGoing: true}}
	check(copying{}, holdfast.CopyTotals{Failed: 1}, failed, errors.Join(failed), exitNotMet, "copy a to b: read at byte 512: "+syscall.EIO.Error(),
		"no half file is left; the disk failed: the kernel's log (dmesg) says why")
	check(goesOn, holdfast.CopyTotals{Failed: 1, Refused: 1}, nil, failed, exitNotMet, "2 were not copied", "all others are; give the same again when what is told above is mended")
	check(copying{}, holdfast.CopyTotals{Failed: 2}, nil, errors.Join(failed, failed), exitNotMet, "2 were not copied",
		"no half file is left; the disk failed: the kernel's log (dmesg) says why")
	check(copying{}, none, nil, errors.New("no room; make some"), exitCannot, "no room", "make some")
	check(copying{}, holdfast.CopyTotals{Files: 3, Size: 5 << 20}, nil, context.Canceled, exitInterrupted, "interrupted after 3 files, 5.0 MiB",
		"what was copied is whole, and nothing half is left; with --resume a large file goes on where it was interrupted")
	check(copying{options: holdfast.CopyOptions{Resume: true}}, none, nil, context.Canceled, exitInterrupted, "interrupted after 0 files, 0 B",
		"what was copied is whole, no other name has changed, and the same call goes on with the large file that was under way, of which there is .NAME.holdfast-partial beside its destination")
	check(copying{options: holdfast.CopyOptions{Method: holdfast.MethodReflink}}, holdfast.CopyTotals{Failed: 1}, errors.ErrUnsupported, errors.ErrUnsupported, exitNotMet,
		errors.ErrUnsupported.Error(), "leave --method out, and what works here is taken")
}

func TestCopyHintsAreInTheWordsOfTheFlags(t *testing.T) {
	check := func(c copying, failed error, sentence, hint string) {
		t.Helper()
		var told bytes.Buffer
		err := c.refusal(holdfast.CopyTotals{Failed: 1}, failed, failed)
		if got := tell(&told, err); got != exitNotMet || told.String() != "holdfast: "+sentence+"\nhint: "+hint+"\n" {
			t.Errorf("exit code %d, %q", got, told.String())
		}
	}
	failedAs := func(op string, err error) error {
		return &holdfast.CopyError{Op: op, Source: "a", Destination: "b", Offset: -1, Err: fmt.Errorf("why: %w; advice to programs", err)}
	}
	ranges := failedAs("copy_file_range", syscall.EXDEV)
	check(copying{options: holdfast.CopyOptions{Method: holdfast.MethodCopyRange}}, ranges,
		"copy a to b: copy_file_range: why: "+syscall.EXDEV.Error(), "leave --method out, and what works here is taken")
	owner := failedAs("chown", syscall.EPERM)
	check(copying{}, owner, "copy a to b: chown: why: "+syscall.EPERM.Error(),
		"no half file is left; run it as root, or leave --archive out")
	cached := failedAs("verify", errors.New("it stays in memory"))
	check(copying{}, cached, "copy a to b: verify: why: it stays in memory",
		"no half file is left; leave --verify out on this file system")
	denied := failedAs("open", syscall.EACCES)
	check(copying{}, denied, "copy a to b: open: why: "+syscall.EACCES.Error(), "no half file is left; advice to programs")
	plain := &holdfast.CopyError{Op: "open", Source: "a; b", Destination: "c", Offset: -1, Err: syscall.EACCES}
	check(copying{}, plain, "copy a; b to c: open: "+syscall.EACCES.Error(), "no half file is left; --keep-going copies the others")
	check(copying{single: true}, plain, "copy a; b to c: open: "+syscall.EACCES.Error(), "no half file is left")
	left := &holdfast.CopyError{Op: "rename", Source: "a", Destination: "b", Offset: -1, Err: fmt.Errorf("why, and %w", holdfast.ErrLeft)}
	check(copying{}, left, "copy a to b: rename: why, and "+holdfast.ErrLeft.Error(), leftHint)
	interrupted := copying{options: holdfast.CopyOptions{Resume: true}}
	if err := interrupted.refusal(holdfast.CopyTotals{}, nil, errors.Join(context.Canceled, left)); !strings.Contains(err.(*refusal).hint, leftHint) {
		t.Errorf("what is left is not told of a copy that was interrupted: %+v", err)
	}
}

// TestCopyShowsNamesThatBreakNoLine: what a name does to a terminal stays in the name.
func TestCopyShowsNamesThatBreakNoLine(t *testing.T) {
	for path, want := range map[string]string{
		"./a b":   "a b",
		"é\u202f": "é\u202f",
		"a\nb":    `"a\nb"`,
		"\x1b[2J": `"\x1b[2J"`,
		"\xff":    `"\xff"`,
	} {
		line := copyLineText(holdfast.CopyResult{Source: path, Destination: "b"})
		failure := copyErrorText(&holdfast.CopyError{Op: "open", Source: path, Destination: "b", Offset: -1, Err: syscall.EIO})
		if line != want+" -> b" || failure != "copy "+want+" to b: open: "+syscall.EIO.Error() {
			t.Errorf("%q is shown as %s and %s", path, line, failure)
		}
	}
}

// TestCopyTellsTheFirstFailures: many of them don't hide what is told at the end.
func TestCopyTellsTheFirstFailures(t *testing.T) {
	var stderr bytes.Buffer
	s := newCopyShow(&copying{options: holdfast.CopyOptions{KeepGoing: true}}, io.Discard, &stderr)
	for range mostFailures + 5 {
		s.each(holdfast.CopyResult{Err: &holdfast.CopyError{Op: "open", Source: "a", Destination: "b", Offset: -1, Err: syscall.EACCES}})
	}
	s.each(holdfast.CopyResult{Err: &holdfast.CopyError{Op: "read", Offset: -1, Err: context.Canceled}})
	if got := strings.Count(stderr.String(), "holdfast: copy a to b: open: "+syscall.EACCES.Error()+"\n"); got != mostFailures {
		t.Errorf("%d failures are told:\n%s", got, stderr.String())
	}
	s = newCopyShow(&copying{}, io.Discard, &stderr)
	s.each(holdfast.CopyResult{Err: syscall.EIO})
	if s.held != syscall.EIO || strings.Contains(stderr.String(), syscall.EIO.Error()) {
		t.Errorf("the only failure is told twice: %v", s.held)
	}
	if !strings.HasSuffix(stderr.String(), "holdfast: further failures are counted\n") {
		t.Errorf("told:\n%s", stderr.String())
	}
}

func TestCopyTotalsAreTold(t *testing.T) {
	check := func(c copying, totals holdfast.CopyTotals, results []holdfast.CopyResult, want string) {
		t.Helper()
		s := newCopyShow(&c, io.Discard, io.Discard)
		for _, r := range results {
			s.each(r)
		}
		if got := s.totalsText(totals); got != want {
			t.Errorf("told:\n%s\nwant:\n%s", got, want)
		}
	}
	atomic := copying{options: holdfast.CopyOptions{Atomic: true, Verify: true}}
	check(atomic, holdfast.CopyTotals{Files: 2, Folders: 1, Links: 1, Size: 5 << 20, Changed: 1, Methods: map[holdfast.CopyMethod]int{holdfast.MethodReflink: 1, holdfast.MethodSplice: 1}},
		[]holdfast.CopyResult{
			{Size: 2 << 20, Method: holdfast.MethodReflink, Durable: true},
			{Size: 3 << 20, Copied: 1 << 20, Resumed: 1 << 20, Method: holdfast.MethodSplice, Durable: true},
		},
		`copied: 2 files, 1 folder, 1 link, 5.0 MiB in 0s
by: reflink 1 file, splice 1 file
holes kept: 1.0 MiB
changed meanwhile: 1 file, whose copies may be of no single moment
verified: each copy was read back from the disk, and is equal
durable: all that was copied
`)
	check(atomic, holdfast.CopyTotals{Files: 1, Failed: 1}, []holdfast.CopyResult{{}},
		`copied: 1 file, 0 B in 0s
not copied: 1 failed, 0 refused
verified: each copy was read back from the disk, and is equal
durable: all but 1
`)
	check(copying{}, holdfast.CopyTotals{Failed: 1}, nil, "copied: 0 files, 0 B in 0s\nnot copied: 1 failed, 0 refused\n")
}

// TestRefusedOpenSaysWhichOfTheTwo is of a call that either file may have been refused.
func TestRefusedOpenSaysWhichOfTheTwo(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "source")
	failure := &holdfast.CopyError{Op: "open", Source: source, Destination: "x", Offset: -1, Err: fs.ErrPermission}
	if got := copyErrorText(failure); got != "copy "+source+" to x: open: permission denied" {
		t.Error(got)
	}
	if err := os.WriteFile(source, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := copyErrorText(failure); got != "copy "+source+" to x: make the copy: permission denied" {
		t.Error(got)
	}
}
