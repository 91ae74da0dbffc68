package zstd_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/zstd"
	"github.com/holdfast-go/holdfast/rotate"
	kp "github.com/klauspost/compress/zstd"
)

func Example() {
	dir, err := os.MkdirTemp("", "zstd")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	out, err := rotate.Open(filepath.Join(dir, "app.log"), rotate.Options{
		Policy:  holdfast.Periodic(time.Second),
		MaxSize: 100 * holdfast.MiB, MaxBackups: 7, Compress: true, Compressor: zstd.Compressor(),
		OnError: func(err *rotate.Error) { fmt.Fprintln(os.Stderr, err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(out, "started")
	if err := out.Close(); err != nil { // else the last second is lost
		log.Fatal(err)
	}
	// Output:
}

// TestBackupsAreTheSameBytes compresses a backup, and one that an interrupted compression has
// left. Backups compressed by gzip are counted and removed too.
func TestBackupsAreTheSameBytes(t *testing.T) {
	dir, want := t.TempDir(), strings.Repeat("a record of the log\n", 20_000)
	const left, gzipped = "app-2026-11-25T10-00-00.000.log", "app-2026-11-24T10-00-00.000.log.gz"
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Close()
	for name, text := range map[string]string{left: want, left + ".zst.part": "half", gzipped: z.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goroutines := runtime.NumGoroutine()
	f, err := rotate.Open(filepath.Join(dir, "app.log"), rotate.Options{
		MaxBackups: 2, Compress: true, Compressor: zstd.Compressor(),
		OnError: func(err *rotate.Error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, want)
	if err := f.Rotate(); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); f.Stats().Compressed < 2 || f.Stats().Removed < 1; time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("%+v", f.Stats())
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines are left", n-goroutines)
	}
	found, err := filepath.Glob(filepath.Join(dir, "app-*"))
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	for _, name := range found {
		packed, err := os.ReadFile(name)
		if err != nil || !strings.HasSuffix(name, ".log.zst") {
			t.Fatal(name, err)
		}
		d, err := kp.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.DecodeAll(packed, nil)
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
		}
		d.Close()
	}
}

// TestACompressionStartsNoGoroutine: it is to take no more than the log gives it.
func TestACompressionStartsNoGoroutine(t *testing.T) {
	before, most := runtime.NumGoroutine(), 0
	look := writer(func(p []byte) (int, error) {
		most = max(most, runtime.NumGoroutine())
		return len(p), nil
	})
	w, err := zstd.Compressor().New(look)
	if err != nil {
		t.Fatal(err)
	}
	for range 64 {
		if _, err := w.Write(bytes.Repeat([]byte("a record of the log\n"), 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || most != before {
		t.Errorf("%v; %d goroutines, and %d before", err, most, before)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
