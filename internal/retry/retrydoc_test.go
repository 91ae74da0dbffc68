//go:build go1.25

package retry

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// errnoNames is the errors that the retry table names.
var errnoNames = map[string]syscall.Errno{
	"EINTR": syscall.EINTR, "EMFILE": syscall.EMFILE, "ENFILE": syscall.ENFILE, "ENOSPC": syscall.ENOSPC, "EDQUOT": syscall.EDQUOT,
	"ENOMEM": syscall.ENOMEM, "ENOBUFS": syscall.ENOBUFS, "EAGAIN": syscall.EAGAIN, "EBUSY": syscall.EBUSY, "EIO": syscall.EIO,
	"ETIMEDOUT": syscall.ETIMEDOUT, "ESTALE": syscall.ESTALE, "ENOENT": syscall.ENOENT, "EEXIST": syscall.EEXIST,
	"EACCES": syscall.EACCES, "EPERM": syscall.EPERM, "EROFS": syscall.EROFS, "EISDIR": syscall.EISDIR, "ENOTDIR": syscall.ENOTDIR,
	"ENAMETOOLONG": syscall.ENAMETOOLONG, "ELOOP": syscall.ELOOP, "EFBIG": syscall.EFBIG, "EINVAL": syscall.EINVAL, "ENXIO": syscall.ENXIO,
}

// retryColumns is the calls of each column of the retry table.
var retryColumns = [][]Op{
	{OpOpen, OpStat, OpResolve},
	{OpWrite},
	{OpTruncate, OpRename, OpMkdir, OpChmod, OpChown, OpListAttributes, OpSetAttribute},
	{OpSync, OpClose},
}

var remedyNames = map[string]remedy{"at once": atOnce, "spare, else pause": AfterSpare, "pause": afterPause, "never": GiveUp}

// TestRetryTableSaysWhatIsDone holds the table of docs/files.md to RemedyFor, in
// both directions.
func TestRetryTableSaysWhatIsDone(t *testing.T) {
	doc, err := os.ReadFile("../../docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(strings.ReplaceAll(string(doc), "\r\n", "\n"), "\n| error | open, look up |")
	table, _, ok2 := strings.Cut(table, "\n\n")
	if !ok || !ok2 {
		t.Fatal("docs/files.md has no retry table")
	}
	var named []syscall.Errno
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != len(retryColumns)+2 {
			t.Fatalf("%q has %d cells", row, len(cells))
		}
		for _, name := range regexp.MustCompile("`(E[A-Z]+)`").FindAllStringSubmatch(cells[0], -1) {
			errno, ok := errnoNames[name[1]]
			if !ok || slices.Contains(named, errno) {
				t.Errorf("%s is not known, or stands there twice", name[1])
			}
			named = append(named, errno)
			holdRow(t, errno, cells[1:len(cells)-1])
		}
	}
	if len(named) != len(errnoNames) {
		t.Errorf("the table names %d errors, want %d", len(named), len(errnoNames))
	}
	if runtime.GOOS == "windows" {
		return // its numbers are others: see retry_windows.go
	}
	for errno := range syscall.Errno(1 << 10) {
		for _, op := range fileOps {
			if !slices.Contains(named, errno) && RemedyFor(op, errno) != GiveUp {
				t.Errorf("%s: %v is tried again, and the table does not say so", op, errno)
			}
		}
	}
}

// holdRow compares the cells of a row with the code's behaviour.
func holdRow(t *testing.T, errno syscall.Errno, cells []string) {
	t.Helper()
	for i, ops := range retryColumns {
		want, ok := remedyNames[cells[i]]
		for _, op := range ops {
			if got := RemedyFor(op, errno); !ok || got != want {
				t.Errorf("%s: the table says %q of %v, and remedyFor %d", op, cells[i], errno, got)
			}
		}
	}
}

func TestRetryTableHasEveryCall(t *testing.T) {
	all := slices.Concat(retryColumns...)
	for _, op := range fileOps {
		if !slices.Contains(all, op) {
			t.Errorf("the table has no column for %s", op)
		}
	}
}
