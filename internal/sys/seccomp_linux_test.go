package sys

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestPageCacheWithoutCachestat(t *testing.T) {
	for _, answer := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		t.Run(unix.ErrnoName(answer), func(t *testing.T) {
			isolate.Without(t, unix.SYS_CACHESTAT, answer, func(t *testing.T) {
				f := isolate.NewFile(t, filepath.Join(t.TempDir(), "file"), 3*os.Getpagesize()+1)
				want := Residency{Pages: 4, Resident: 4, Source: fromMincore}
				if r, err := PageCache(f); err != nil || r != want {
					t.Errorf("%+v, %v; want %+v", r, err, want)
				}
			})
		})
	}
}
