package trial

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// diskWorkDir is a work directory on a disk. It skips the test if there is no disk.
func diskWorkDir(t *testing.T) *WorkDir {
	t.Helper()
	g, err := OpenWorkDir(t.TempDir(), false)
	if errors.Is(err, ErrMemoryOnly) {
		g, err = OpenWorkDir(".", false)
	}
	if err != nil {
		t.Skipf("no directory on a disk: %v", err)
	}
	t.Cleanup(func() { g.Close() })
	if r := onto(t, g); errors.Is(r, errors.ErrUnsupported) {
		t.Skipf("the page cache can't be asked here: %v", r)
	}
	return g
}

// onto returns an error if the page cache can't be queried on g.
func onto(t *testing.T, g *WorkDir) error {
	t.Helper()
	f, err := os.Create(filepath.Join(g.Dir(), "asked"))
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	_, err = sys.PageCache(f)
	return err
}

func TestCacheIsAsAskedBeforeTheClockStarts(t *testing.T) {
	g := diskWorkDir(t)
	check := func(c result.Cache, resident func(r result.Residency) bool) {
		t.Helper()
		a := Append{Policy: holdfast.Buffered(4096), RecordBytes: 100, Writers: 2, Records: 100, Stride: 1, Cache: c}
		m, err := a.Run(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		if m.Before == nil || m.Before.Pages != headBytes/4096+1 && os.Getpagesize() == 4096 || !resident(*m.Before) {
			t.Errorf("%s: %+v", c, m.Before)
		}
		if m.Size != 100*100 || m.Records != 100 {
			t.Errorf("%s: %d bytes of %d records are reported", c, m.Size, m.Records)
		}
	}
	check(result.Warm, func(r result.Residency) bool { return r.Resident == r.Pages })
	check(result.Cold, func(r result.Residency) bool { return r.Resident == 0 })
	check(result.TryCold, func(r result.Residency) bool { return r.Resident == 0 })
	if os.Geteuid() == 0 {
		check(result.Dropped, func(r result.Residency) bool { return r.Resident == 0 })
	}
	for _, c := range []result.Cache{result.Cold, result.Warm} {
		if err := g.Can(c); err != nil {
			t.Errorf("%s on a disk: %v", c, err)
		}
	}
	isEmpty(t, g.Dir())
}

// TestColdIsRefusedWhereItCanNotBeHad: a file system in memory keeps its pages.
func TestColdIsRefusedWhereItCanNotBeHad(t *testing.T) {
	const shm = "/dev/shm"
	g, err := OpenWorkDir(shm, true)
	if err != nil || g.FileSystem != "tmpfs" {
		t.Skipf("%s is not a file system in memory here: %v", shm, err)
	}
	defer g.Close()
	a := Append{Policy: holdfast.Buffered(4096), RecordBytes: 100, Writers: 1, Records: 10, Stride: 1}
	var cold *CacheError
	a.Cache = result.Cold
	if _, err := a.Run(t.Context(), g); !errors.As(err, &cold) || cold.Asked != result.Cold || cold.Before.Resident == 0 && cold.Err == nil {
		t.Errorf("cold: %v", err)
	}
	if err := g.Can(result.Cold); !errors.As(err, &cold) {
		t.Errorf("a work directory in memory is cold: %v", err)
	}
	a.Cache = result.TryCold
	if m, err := a.Run(t.Context(), g); err != nil || m.Before == nil || m.Before.Resident == 0 {
		t.Errorf("try-cold: %+v, %v", m.Before, err)
	}
	a.Cache = result.Remount
	if _, err := a.Run(t.Context(), g); !errors.As(err, &cold) || cold.Err == nil {
		t.Errorf("remount: %v", err)
	}
	isEmpty(t, g.Dir())
}

// TestHeadIsVerifiedToo damages the head of the file, before the records.
func TestHeadIsVerifiedToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	content := head(headBytes)
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(content)
	if err := verify(path, headBytes, 100, []int64{0}); err != nil {
		t.Errorf("a sound head: %v", err)
	}
	var wrong *ContentError
	content[5000] ^= 1
	write(content)
	if err := verify(path, headBytes, 100, []int64{0}); !errors.As(err, &wrong) || wrong.Offset != 5000 {
		t.Errorf("a bit at byte 5000: %v", err)
	}
	write(content[:headBytes-1])
	if err := verify(path, headBytes, 100, []int64{0}); !errors.As(err, &wrong) {
		t.Errorf("a short head: %v", err)
	}
}

func TestEmptyCellTouchesNoFile(t *testing.T) {
	g := newWorkDir(t)
	a := Append{RecordBytes: 100, Writers: 3, Records: 1000, Stride: 31, Empty: true, Cache: result.Cold, Open: func(string) (Target, error) {
		t.Error("a file was opened")
		return nil, errors.ErrUnsupported
	}}
	m, err := a.Run(t.Context(), g)
	if err != nil || m.Records != 1000 || m.Elapsed <= 0 || m.Before != nil || m.Latency.Count == 0 {
		t.Errorf("%+v, %v", m, err)
	}
	isEmpty(t, g.Dir())
}

// TestWorkDirIsRemountedByItsCaller: the caller's Remount decides, whatever the mount looks like.
func TestWorkDirIsRemountedByItsCaller(t *testing.T) {
	g, err := OpenWorkDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	fails := errors.New("it is busy")
	g.Remount = func() error { return fails }
	if err := g.Can(result.Remount); !errors.Is(err, fails) {
		t.Errorf("%v, want %v", err, fails)
	}
}
