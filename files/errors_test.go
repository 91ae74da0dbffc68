//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/retry"
)

func TestOnlyAFileErrorIsTemporary(t *testing.T) {
	if errors.Is(syscall.ENOSPC, files.ErrTemporary) {
		t.Error("an errno knows nothing of ErrTemporary")
	}
	wrapped := fmt.Errorf("export: %w", &files.Error{Op: "write", Err: syscall.ENOSPC})
	if !errors.Is(wrapped, files.ErrTemporary) || errors.Is(wrapped, holdfast.ErrClosed) {
		t.Error("a wrapped Error lost what it is")
	}
	for _, inner := range []files.Error{{Op: "sync", Err: syscall.ENOSPC}, {Op: "write", Err: syscall.ENOSPC}} {
		outer := &files.Error{Op: "wait", Err: fmt.Errorf("no memory; see the first: %w", &inner)}
		if got, want := errors.Is(outer, files.ErrTemporary), inner.Op != "sync"; got != want {
			t.Errorf("%v: errors.Is(…, ErrTemporary) = %t", outer, got)
		}
	}
}

// TestErrorIsTemporaryIfItsCallMayBeMadeAgain compares the error's answer to users with the Set's
// own retries.
func TestErrorIsTemporaryIfItsCallMayBeMadeAgain(t *testing.T) {
	ops := []retry.Op{retry.OpOpen, retry.OpWrite, retry.OpTruncate, retry.OpSync, retry.OpClose, retry.OpRename, retry.OpStat, retry.OpMkdir, retry.OpChmod, retry.OpChown, retry.OpResolve}
	temporary := 0
	for errno := syscall.Errno(1); errno < 134; errno++ {
		for _, op := range ops {
			for _, err := range []error{errno, &os.PathError{Op: "open", Path: "a", Err: errno}, errors.Join(errno, context.Canceled)} {
				e := &files.Error{Op: string(op), Err: err}
				want := retry.RemedyFor(op, errno) != retry.GiveUp
				if got := errors.Is(e, files.ErrTemporary); got != want {
					t.Errorf("errors.Is(%s %v, ErrTemporary) = %t", op, err, got)
				}
				if !errors.Is(e, errno) {
					t.Errorf("%s: errors.Is does not find %v", op, errno)
				}
				if want {
					temporary++
				}
			}
		}
	}
	if temporary == 0 {
		t.Error("no error is temporary")
	}
}
