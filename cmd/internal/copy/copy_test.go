package copy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/filecopy"
)

func TestCopyRefusalsHaveTheirExitCodes(t *testing.T) {
	check := func(c copying, totals filecopy.Totals, held, err error, code int, sentence, hint string) {
		t.Helper()
		var reported bytes.Buffer
		if got := cli.Report(&reported, c.refusal(totals, held, err)); got != code || reported.String() != "holdfast: "+sentence+"\nhint: "+hint+"\n" {
			t.Errorf("exit code %d, %q", got, reported.String())
		}
	}
	var none filecopy.Totals
	failed := &filecopy.Error{Op: "read", Source: "a", Destination: "b", Offset: 512, Err: syscall.EIO}
	goesOn := copying{options: filecopy.Options{KeepGoing: true}}
	check(copying{}, filecopy.Totals{Failed: 1}, failed, errors.Join(failed), cli.ExitNotMet, "copy a to b: read at byte 512: "+syscall.EIO.Error(),
		"no half file is left; the disk failed: the kernel's log (dmesg) says why")
	check(goesOn, filecopy.Totals{Failed: 1, Refused: 1}, nil, failed, cli.ExitNotMet, "2 were not copied", "the others are copied; fix the failures above, and run the same command again")
	check(copying{}, filecopy.Totals{Failed: 2}, nil, errors.Join(failed, failed), cli.ExitNotMet, "2 were not copied",
		"no half file is left; the disk failed: the kernel's log (dmesg) says why")
	check(copying{}, none, nil, errors.New("no room; make some"), cli.ExitCannot, "no room", "make some")
	check(copying{}, filecopy.Totals{Files: 3, Size: 5 << 20}, nil, context.Canceled, cli.ExitInterrupted, "interrupted after 3 files, 5.0 MiB",
		"the copied files are complete; no partial file is left; with --resume, a large file would continue where it stopped")
	check(copying{options: filecopy.Options{Resume: true}}, none, nil, context.Canceled, cli.ExitInterrupted, "interrupted after 0 files, 0 B",
		"the copied files are complete; the same command continues the unfinished large file, whose part is in .NAME.holdfast-partial beside its destination")
	check(copying{options: filecopy.Options{Method: filecopy.Reflink}}, filecopy.Totals{Failed: 1}, errors.ErrUnsupported, errors.ErrUnsupported, cli.ExitNotMet,
		errors.ErrUnsupported.Error(), "leave --method out to use a method that works here")
}

func TestCopyHintsAreInTheWordsOfTheFlags(t *testing.T) {
	check := func(c copying, failed error, sentence, hint string) {
		t.Helper()
		var reported bytes.Buffer
		err := c.refusal(filecopy.Totals{Failed: 1}, failed, failed)
		if got := cli.Report(&reported, err); got != cli.ExitNotMet || reported.String() != "holdfast: "+sentence+"\nhint: "+hint+"\n" {
			t.Errorf("exit code %d, %q", got, reported.String())
		}
	}
	failedAs := func(op string, err error) error {
		return &filecopy.Error{Op: op, Source: "a", Destination: "b", Offset: -1, Err: fmt.Errorf("why: %w; advice to programs", err)}
	}
	ranges := failedAs("copy_file_range", syscall.EXDEV)
	check(copying{options: filecopy.Options{Method: filecopy.CopyRange}}, ranges,
		"copy a to b: copy_file_range: why: "+syscall.EXDEV.Error(), "leave --method out to use a method that works here")
	owner := failedAs("chown", syscall.EPERM)
	check(copying{}, owner, "copy a to b: chown: why: "+syscall.EPERM.Error(),
		"no half file is left; run it as root, leave --archive out, or add --best to go on without it")
	check(copying{root: true, options: filecopy.Options{Archive: true}}, owner, "copy a to b: chown: why: "+syscall.EPERM.Error(),
		"no half file is left; the file system, or its mount, does not permit that: leave --archive out, or add --best to go on without it")
	check(copying{}, failedAs("sync directory", syscall.EIO), "copy a to b: sync directory: why: "+syscall.EIO.Error(),
		"the file is complete; only its name may be lost in a power cut: the kernel's log (dmesg) says why")
	cached := failedAs("verify", errors.New("it stays in memory"))
	check(copying{}, cached, "copy a to b: verify: why: it stays in memory",
		"no half file is left; leave --verify out on this file system")
	denied := failedAs("open", syscall.EACCES)
	check(copying{}, denied, "copy a to b: open: why: "+syscall.EACCES.Error(), "no half file is left; advice to programs")
	plain := &filecopy.Error{Op: "open", Source: "a; b", Destination: "c", Offset: -1, Err: syscall.EACCES}
	check(copying{}, plain, "copy a; b to c: open: "+syscall.EACCES.Error(), "no half file is left; --keep-going copies the others")
	check(copying{single: true}, plain, "copy a; b to c: open: "+syscall.EACCES.Error(), "no half file is left")
	left := &filecopy.Error{Op: "rename", Source: "a", Destination: "b", Offset: -1, Err: fmt.Errorf("why, and %w", filecopy.ErrLeftover)}
	check(copying{}, left, "copy a to b: rename: why, and "+filecopy.ErrLeftover.Error(), leftHint)
	interrupted := copying{options: filecopy.Options{Resume: true}}
	if err := interrupted.refusal(filecopy.Totals{}, nil, errors.Join(context.Canceled, left)); !strings.Contains(err.(*cli.Refusal).Hint, leftHint) {
		t.Errorf("what is left is not reported of a copy that was interrupted: %+v", err)
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
		line := copyLineText(filecopy.Result{Source: path, Destination: "b"})
		failure := copyErrorText(&filecopy.Error{Op: "open", Source: path, Destination: "b", Offset: -1, Err: syscall.EIO})
		if line != want+" -> b" || failure != "copy "+want+" to b: open: "+syscall.EIO.Error() {
			t.Errorf("%q is shown as %s and %s", path, line, failure)
		}
	}
}

// TestCopyReportsTheFirstFailures: many of them don't hide what is reported at the end.
func TestCopyReportsTheFirstFailures(t *testing.T) {
	var stderr bytes.Buffer
	s := newCopyShow(&copying{options: filecopy.Options{KeepGoing: true}}, io.Discard, &stderr)
	for range cli.MostFailures + 5 {
		s.each(filecopy.Result{Err: &filecopy.Error{Op: "open", Source: "a", Destination: "b", Offset: -1, Err: syscall.EACCES}})
	}
	s.each(filecopy.Result{Err: &filecopy.Error{Op: "read", Offset: -1, Err: context.Canceled}})
	if got := strings.Count(stderr.String(), "holdfast: copy a to b: open: "+syscall.EACCES.Error()+"\n"); got != cli.MostFailures {
		t.Errorf("%d failures are stderr:\n%s", got, stderr.String())
	}
	s = newCopyShow(&copying{}, io.Discard, &stderr)
	s.each(filecopy.Result{Err: syscall.EIO})
	if s.held != syscall.EIO || strings.Contains(stderr.String(), syscall.EIO.Error()) {
		t.Errorf("the only failure is reported twice: %v", s.held)
	}
	if !strings.HasSuffix(stderr.String(), "holdfast: further failures are counted\n") {
		t.Errorf("stderr:\n%s", stderr.String())
	}
}

func TestCopyTotalsAreReported(t *testing.T) {
	check := func(c copying, totals filecopy.Totals, results []filecopy.Result, want string) {
		t.Helper()
		s := newCopyShow(&c, io.Discard, io.Discard)
		for _, r := range results {
			s.each(r)
		}
		if got := s.totalsText(totals); got != want {
			t.Errorf("stderr:\n%s\nwant:\n%s", got, want)
		}
	}
	atomic := copying{options: filecopy.Options{Atomic: true, Verify: true}}
	check(atomic, filecopy.Totals{Files: 2, Dirs: 1, Links: 1, Size: 5 << 20, Changed: 1, Methods: map[filecopy.Method]int{filecopy.Reflink: 1, filecopy.Splice: 1}},
		[]filecopy.Result{
			{Size: 2 << 20, Method: filecopy.Reflink, Durable: true},
			{Size: 3 << 20, Copied: 1 << 20, Resumed: 1 << 20, Method: filecopy.Splice, Durable: true},
		},
		`copied: 2 files, 1 directory, 1 link, 5.0 MiB in 0s
by: reflink 1 file, splice 1 file
holes kept: 1.0 MiB
changed during the copy: 1 file, whose copies may mix old and new bytes
verified: each copy was read back from the disk and equals its source
durable: everything copied
`)
	check(atomic, filecopy.Totals{Files: 1, Failed: 1}, []filecopy.Result{{}},
		`copied: 1 file, 0 B in 0s
not copied: 1 failed, 0 refused
verified: each copy was read back from the disk and equals its source
durable: all but 1
`)
	check(copying{}, filecopy.Totals{Failed: 1}, nil, "copied: 0 files, 0 B in 0s\nnot copied: 1 failed, 0 refused\n")
}

// TestRefusedOpenSaysWhichOfTheTwo is of a call that either file may have been refused.
func TestRefusedOpenSaysWhichOfTheTwo(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "source")
	failure := &filecopy.Error{Op: "open", Source: source, Destination: "x", Offset: -1, Err: fs.ErrPermission}
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

// TestTheTimeLeftIsGuessedByTheLastSeconds: what was fast before them says nothing.
func TestTheTimeLeftIsGuessedByTheLastSeconds(t *testing.T) {
	var p pace
	check := func(at time.Duration, done, total int64, want time.Duration) {
		t.Helper()
		if got := p.left(filecopy.Progress{Elapsed: at, Bytes: done, BytesTotal: total}); got != want {
			t.Errorf("after %v: %v left, want %v", at, got, want)
		}
	}
	check(0, 0, 1000, 0)
	check(time.Second, 0, 1000, 0)
	check(2*time.Second, 500, 1000, 2*time.Second)
	check(3*time.Second, 600, 1000, 2*time.Second)
	check(4*time.Second, 610, 1000, 3*time.Second*390/610)
	check(6*time.Second, 620, 1000, 3*time.Second*380/20)
	check(6*time.Second, 1000, 1000, 0)
}
