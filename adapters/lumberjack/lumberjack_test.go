package lumberjack

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
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
	} {
		if n, err := l.Write([]byte("record\n")); n != 0 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d, %v; want an error with %q", n, err, want)
		}
	}
}
