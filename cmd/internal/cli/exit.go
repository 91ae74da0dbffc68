// Package cli has the common parts of the commands: exit codes and refusals, flags and help, output
// that can't control the terminal, progress, new files, and reading results. Start with [Run] and
// [Refusal].
package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/retry"
)

// The exit codes.
const (
	ExitOK          = 0
	ExitNotMet      = 1 // a stated need or promise was not met
	ExitUsage       = 2
	ExitCannot      = 3   // the measurement was not possible
	ExitNotKnown    = 4   // the measurement does not decide a stated need
	ExitInterrupted = 130 // by SIGINT
	ExitUnread      = 141 // standard output has no reader any more: as a shell reports a process that SIGPIPE ended
	ExitBySignal    = 128 // plus the number of another signal: 143 is SIGTERM, 129 SIGHUP
)

// A Refusal is an error with its exit code and a hint for the user.
type Refusal struct {
	Code int
	Err  error  // lower case, without a full stop
	Hint string // likewise
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Misuse is the refusal of wrong input.
func Misuse(hint, format string, args ...any) error {
	return &Refusal{ExitUsage, fmt.Errorf(format, args...), hint}
}

// Say prints a line on standard error, folded where that is a terminal.
func Say(stderr io.Writer, format string, args ...any) {
	line(stderr, "holdfast: "+InLocale(fmt.Sprintf(format, args...)))
}

// line prints a text as one line, or folded on a terminal.
func line(w io.Writer, text string) {
	fmt.Fprint(w, folded(OneLine(text)+"\n", columns(w, 0)))
}

// Report prints err for the user and returns the exit code. It prints nothing if standard output
// has no reader any more.
func Report(stderr io.Writer, err error) int {
	switch {
	case err == nil:
		return ExitOK
	case retry.Is(err, syscall.EPIPE):
		return ExitUnread
	}
	stderr = &output{Writer: Bare(stderr)}
	name := "holdfast: "
	for _, one := range Leaves(err) {
		line(stderr, name+one.Error())
		name = ""
	}
	var r *Refusal
	if !errors.As(err, &r) {
		r = &Refusal{ExitCannot, err, DiskHint(err)}
	}
	if r.Hint != "" {
		line(stderr, "hint: "+r.Hint)
	}
	return r.Code
}

// Cause returns an error without the name of a temporary file.
func Cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// DiskHint returns advice about an error of the disk, or of what the system has in place of files, or "".
func DiskHint(err error) string {
	var path *fs.PathError
	switch {
	case errors.As(err, &path) && errors.Is(path, fs.ErrNotExist) && (path.Path == "/dev/null" || strings.HasPrefix(path.Path, "/proc/")):
		dir := path.Path[:strings.IndexByte(path.Path[1:], '/')+1]
		return "mount " + dir + ": this chroot or container has none, or not all of it"
	case retry.Is(err, syscall.ENOSPC, syscall.EDQUOT):
		return "free some space, or use another disk"
	case retry.Is(err, syscall.EFBIG):
		return "the file system, or ulimit -f, allows no file as large as that"
	case retry.Is(err, syscall.EIO):
		return "the disk failed: the kernel's log (dmesg) says why"
	case retry.Is(err, syscall.EMFILE, syscall.ENFILE):
		return "raise the number of files that may be open (ulimit -n)"
	case retry.Is(err, syscall.EROFS):
		return "the file system is mounted read-only"
	}
	return ""
}

// Leaves returns the joined errors in err.
func Leaves(err error) []error {
	if err == nil {
		return nil
	}
	if r, ok := err.(*Refusal); ok {
		return Leaves(r.Err)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Leaves(e)...)
	}
	return all
}
