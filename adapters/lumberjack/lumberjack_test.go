package lumberjack

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

var _ io.WriteCloser = new(Logger) // as caddy, traefik and the OpenTelemetry Collector use it

func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestTheFirstWriteMakesTheFileAndItsDirectories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "app.log")
	l := &Logger{Filename: path}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("before the first Write: %v", err)
	}
	for range 2 { // a Write after Close opens it again
		if n, err := l.Write([]byte("record\n")); n != 7 || err != nil {
			t.Fatal(n, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "record\nrecord\n" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestSizesAreInMegabytes, the limit of backups holds, and all goroutines' records are there.
func TestSizesAreInMegabytes(t *testing.T) {
	dir := t.TempDir()
	l := &Logger{Filename: filepath.Join(dir, "app.log"), MaxSize: 1, MaxBackups: 1, Policy: holdfast.Buffered(64 * holdfast.KiB)}
	line := append(bytes.Repeat([]byte("x"), 1023), '\n')
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 640 { // 2.5 MB in all
				if _, err := l.Write(line); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	group.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	all := files(t, dir)
	if len(all) != 2 {
		t.Fatalf("%q, want the log and one backup", all)
	}
	info, err := os.Stat(filepath.Join(dir, all[0]))
	if err != nil || info.Size() < 1<<20 || info.Size() > 1<<20+4*int64(len(line)) {
		t.Errorf("%s has %d bytes, want 1 MiB; %v", all[0], info.Size(), err)
	}
}

func TestRotateBeginsANewFile(t *testing.T) {
	dir := t.TempDir()
	l := &Logger{Filename: filepath.Join(dir, "app.log"), LocalTime: true}
	for range 2 {
		if _, err := l.Write([]byte("record\n")); err != nil {
			t.Fatal(err)
		}
		if err := l.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if all := files(t, dir); len(all) != 3 {
		t.Errorf("%q, want the log and two backups", all)
	}
}

// TestAConfigurationIsRead with lumberjack's keys and a policy.
func TestAConfigurationIsRead(t *testing.T) {
	var l Logger
	err := json.Unmarshal([]byte(`{"filename": "app.log", "maxsize": 5, "maxage": 10, "maxbackups": 3, "localtime": true, "compress": true, "policy": "buffer=64KiB,flush=1s,sync=never"}`), &l)
	if err != nil || l.Filename != "app.log" || l.MaxSize != 5 || l.MaxAge != 10 || l.MaxBackups != 3 || !l.LocalTime || !l.Compress || l.Policy.Buffer != 64*holdfast.KiB {
		t.Errorf("%v: %+v", err, &l)
	}
}

func TestABadFieldIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	for want, l := range map[string]*Logger{
		"MaxSize -1":    {Filename: path, MaxSize: -1},
		"MaxAge -2":     {Filename: path, MaxAge: -2},
		"MaxBackups -3": {Filename: path, MaxBackups: -3},
		"25:00":         {Filename: path, RotateAt: []string{"25:00"}},
		"60":            {Filename: path, RotateAtMinutes: []int{60}},
		"lz4":           {Filename: path, Compression: "lz4"},
		"Compressor":    {Filename: path, Compression: "zstd"},
		"2006-01":       {Filename: path, BackupTimeFormat: "2006-01"},
	} {
		if n, err := l.Write([]byte("record\n")); n != 0 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d, %v; want an error with %q", n, err, want)
		}
	}
}

// TestNothingIsLostOfALogThatExists: it is appended to, and its backups of lumberjack count and are compressed.
func TestNothingIsLostOfALogThatExists(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"app.log": "before\n", "app-2020-01-02T03-04-05.000.log": "old\n", "app-2020-01-02T03-04-04.000.log.gz": "older", "app-2020-01-02T03-04-03.000.log": "oldest\n",
		"app-not-a-time.log": "another's\n", "app.log.bak": "another's\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := &Logger{Filename: filepath.Join(dir, "app.log"), MaxBackups: 2, Compress: true}
	if _, err := l.Write([]byte("after\n")); err != nil {
		t.Fatal(err)
	}
	want := []string{"app-2020-01-02T03-04-04.000.log.gz", "app-2020-01-02T03-04-05.000.log.gz", "app-not-a-time.log", "app.log", "app.log.bak"}
	for until := time.Now().Add(time.Minute); !slices.Equal(files(t, dir), want) && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "app.log")); err != nil || string(data) != "before\nafter\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestAFileOverTheLimitIsRotatedByTheFirstWrite, and a record longer than MaxSize is accepted.
func TestAFileOverTheLimitIsRotatedByTheFirstWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	if err := os.WriteFile(path, bytes.Repeat([]byte("0123456789abcde\n"), 1<<16), 0o640); err != nil {
		t.Fatal(err)
	}
	l := &Logger{Filename: path, MaxSize: 1}
	long := append(bytes.Repeat([]byte("x"), 2<<20), '\n')
	for _, p := range [][]byte{[]byte("first\n"), long, []byte("last\n")} {
		if n, err := l.Write(p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	all := files(t, dir)
	var sizes []int64
	for _, name := range all {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v; want the mode of the first file", name, info.Mode(), err)
		}
		sizes = append(sizes, info.Size())
	}
	if want := []int64{1 << 20, int64(len("first\n") + len(long)), 5}; !slices.Equal(sizes, want) {
		t.Errorf("%q have %d bytes, want %d", all, sizes, want)
	}
}

// TestTheDefaultNameIsInTheTemporaryDirectory.
func TestTheDefaultNameIsInTheTemporaryDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // of Windows
	l := new(Logger)
	if _, err := l.Write([]byte("record\n")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if want := filepath.Base(os.Args[0]) + "-lumberjack.log"; !slices.Equal(files(t, dir), []string{want}) {
		t.Errorf("%q, want %s", files(t, dir), want)
	}
}

// TestTimberjacksFields: the layout of names, a mode, minutes and a format of compression.
func TestTimberjacksFields(t *testing.T) {
	dir := t.TempDir()
	l := &Logger{Filename: filepath.Join(dir, "app.log"), BackupTimeFormat: "20060102-150405", FileMode: 0o620, Compression: "none", Compress: true,
		RotateAtMinutes: []int{0, 15}, RotateAt: []string{"00:00"}, RotationInterval: time.Hour}
	o, err := l.options()
	if err != nil || !slices.Equal(o.RotateAt, []string{"00:00", "*:00", "*:15"}) || o.RotationInterval != time.Hour {
		t.Errorf("%v: %+v", err, o)
	}
	if len(l.RotateAt) != 1 {
		t.Errorf("RotateAt is %q by now", l.RotateAt)
	}
	if _, err := l.Write([]byte("record\n")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(l.Filename); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&^0o022 != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := errors.Join(l.Rotate(), l.Close()); err != nil {
		t.Error(err)
	}
	if all := files(t, dir); len(all) != 2 || len(all[0]) != len("app-20060102-150405.log") {
		t.Errorf("%q", all)
	}
	check := func(l *Logger, compress, other bool) {
		t.Helper()
		o, err := l.options()
		if err != nil || o.Compress != compress || (o.Compressor.New != nil) != other {
			t.Errorf("%q: %v, %+v", l.Compression, err, o)
		}
	}
	zstd := rotate.Compressor{Suffix: ".zst", New: func(io.Writer) (io.WriteCloser, error) { return nil, nil }}
	check(&Logger{}, false, false)
	check(&Logger{Compress: true}, true, false)
	check(&Logger{Compression: "gzip", Compressor: zstd}, true, false)
	check(&Logger{Compression: "zstd", Compressor: zstd}, true, true)
	check(&Logger{Compressor: zstd}, true, true)
	check(&Logger{Compression: "none", Compressor: zstd}, false, false)
}
