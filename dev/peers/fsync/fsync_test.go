package fsync

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// newSite returns one of short trials.
func newSite(t *testing.T) *site {
	t.Helper()
	ground, err := trial.OpenWorkDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(ground.Dir()); err != nil || len(left) > 0 {
			t.Errorf("trials left %v, %v", left, err)
		}
		if err := ground.Close(); err != nil {
			t.Error(err)
		}
	})
	return &site{ground: ground, length: 10 * time.Millisecond}
}

// captured returns what a tool printed once, on ext4.
func captured(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseFio(t *testing.T) {
	check := func(out string, want sample) {
		t.Helper()
		if got, err := parseFio([]byte(out)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	fdatasync := captured(t, "fio_fdatasync.json")
	want := sample{Units: 259, Elapsed: 51 * time.Millisecond, Write: 5365, Sync: 187471}
	check(fdatasync, want)
	check("fio: this_platform does not support a thing\n"+fdatasync, want)
	check(captured(t, "fio_dsync.json"), sample{Units: 250, Elapsed: 51 * time.Millisecond, Write: 199700})

	refuse := func(out, want string) {
		t.Helper()
		if _, err := parseFio([]byte(out)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", out, err, want)
		}
	}
	refuse(captured(t, "fio_fails.json"), "fio's job failed with error 22")
	refuse(fdatasync[:len(fdatasync)/2], "fio's JSON: unexpected end")
	refuse("fio: no such option", "no JSON")
	refuse(`{"jobs": []}`, "0 jobs")
	refuse(`{"jobs": [{}]}`, "0 writes in 0 ms")
}

func TestParsePg(t *testing.T) {
	out := captured(t, "pg_test_fsync.txt")
	check := func(method string, want time.Duration) {
		t.Helper()
		got, err := parsePg(strings.NewReader(out), method)
		if one := time.Duration(got.Time()); err != nil || one != want {
			t.Errorf("%s takes %v, %v; want %v", method, one, err, want)
		}
	}
	check("open_datasync", 98759) // 10125.593 ops/sec
	check("fdatasync", 107217)    // 9326.815 ops/sec
	check("open_sync", 103327)    // 9678.003 ops/sec

	refuse := func(out, method, want string) {
		t.Helper()
		if _, err := parsePg(strings.NewReader(out), method); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", method, err, want)
		}
	}
	refuse(out, "fsync_writethrough", `no figure, but "fsync_writethrough n/a"`)
	refuse(out, "1", "does not report 1")
	refuse(out[:strings.Index(out, "fdatasync   ")], "fdatasync", "it ended before fdatasync")
	refuse(strings.Replace(out, "10125.593", "0.000", 1), "open_datasync", `"0.000" is no rate`)
	refuse(strings.Replace(out, "10125.593", "lots", 1), "open_datasync", `"lots" is no rate`)
}

// TestParsePgStopsAtItsLine reads no more than it needs: what the tool does then
// would take a quarter of a minute.
func TestParsePgStopsAtItsLine(t *testing.T) {
	out := captured(t, "pg_test_fsync.txt")
	end := strings.Index(out, "        fsync  ")
	never := readerFunc(func([]byte) (int, error) { t.Fatal("reads on"); return 0, nil })
	if _, err := parsePg(io.MultiReader(strings.NewReader(out[:end]), never), "fdatasync"); err != nil {
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestPartsOfAnOperationAreShown has them from fio, and not from a loop that reports none.
func TestPartsOfAnOperationAreShown(t *testing.T) {
	all := groups([]tool{{"fio", "fio", "fio"}})[:1]
	for _, a := range all[0].Arms {
		s := sample{Units: 1000, Elapsed: time.Millisecond}
		if a.Name == "fio" {
			s.Write, s.Sync = 100, 700
		}
		a.Samples = []sample{s}
	}
	var out bytes.Buffer
	command.Tables(&out, all, columns...)
	for _, want := range []string{"| ops/s | write µs | sync µs | rest µs |", "| fio | 1 µs |  | 1.00 |  | not proven |  |  |  | 1000000 | 0.1 | 0.7 | 0.2 |", "| holdfast | 1 µs |  |  |  |  |  |  |  | 1000000 |  |  |  |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
}

// TestOurArmsWork runs all arms that need no tool, among files that bear the names
// they use.
func TestOurArmsWork(t *testing.T) {
	s := newSite(t)
	planted := filepath.Join(filepath.Dir(s.ground.Dir()), "data")
	if err := os.WriteFile(planted, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups(nil) {
		for _, a := range g.Arms {
			if a.Note == command.Twin || g.Name == "grow-2300" || g.Name == "grow-8192" {
				continue // the same code, as the next line sees
			}
			taken, err := a.Do(t.Context(), s)
			if strings.Contains(g.Name, "direct") && err != nil && s.ground.FileSystem == "tmpfs" {
				t.Logf("%s: tmpfs has no O_DIRECT here: %v", g.Name, err)
				continue
			}
			if err != nil || taken.Units < 1 || taken.Elapsed <= 0 {
				t.Errorf("%s, %s: %+v, %v", g.Name, a.Name, taken, err)
			}
		}
	}
	if text, err := os.ReadFile(planted); err != nil || string(text) != "mine" {
		t.Errorf("the planted file: %q, %v", text, err)
	}
}

func TestOverwritingIsVerified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := allocate(path); err != nil {
		t.Fatal(err)
	}
	if err := verify(path, alignedBlock()); err == nil {
		t.Error("another block was not noticed")
	}
	if err := allocate(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
}

// TestMissingToolsAreLeftOut has neither of them.
func TestMissingToolsAreLeftOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if path := find("fio", ""); path != "" {
		t.Fatalf("found %s in an empty directory", path)
	}
	for _, g := range groups([]tool{{"fio", "fio", ""}, {"pg_test_fsync", "postgresql", ""}}) {
		for i, a := range g.Arms {
			if a.Name == "fio" || a.Name == "pg_test_fsync" {
				t.Errorf("%s has %s", g.Name, a.Name)
			}
			if i == 1 && a.Note != command.Twin {
				t.Errorf("%s: the second arm is %s, not our twin", g.Name, a.Name)
			}
		}
	}
}

func TestNewestOfSeveralVersionsIsFound(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"14", "16", "15"} {
		if err := os.MkdirAll(filepath.Join(dir, version, "bin", "tool"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := find("no-such-tool", filepath.Join(dir, "*", "bin", "tool")), filepath.Join(dir, "16", "bin", "tool"); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestToolsWork runs the tools that are installed.
func TestToolsWork(t *testing.T) {
	tools := findTools()
	for _, tool := range tools {
		t.Run(tool.name, func(t *testing.T) {
			if tool.path == "" {
				t.Skipf("%s is not installed (Debian: apt-get install %s)", tool.name, tool.debian)
			}
			s := newSite(t)
			for _, g := range groups(tools) {
				i := slices.IndexFunc(g.Arms, func(a *arm) bool { return a.Name == tool.name })
				if i < 0 || g.Name == "grow-2300" || g.Name == "grow-8192" || tool.name == "pg_test_fsync" && g.Name == "overwrite" {
					continue // like the others, and each takes a while
				}
				taken, err := g.Arms[i].Do(t.Context(), s)
				if err != nil || taken.Units < 1 || taken.Elapsed <= 0 {
					t.Errorf("%s: %+v, %v", g.Name, taken, err)
				}
			}
			if tool.version() == "" || strings.Contains(tool.version(), "unknown") {
				t.Errorf("version %q", tool.version())
			}
		})
	}
}

func TestCommandRefuses(t *testing.T) {
	check := func(code int, want string, args ...string) {
		t.Helper()
		err := run(t.Context(), args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || command.ExitCode(err) != code {
			t.Errorf("%q: got %v (exit %d), want %q (exit %d)", args, err, command.ExitCode(err), want, code)
		}
	}
	check(command.ExitUsage, "-trial=99ms: give at least 100ms", "-trial=99ms")
	check(command.ExitUsage, "-run=nosuch matches no arm; the groups are grow-8192, grow-2300, grow-128, overwrite", "-run=nosuch")
	check(command.ExitUnmeasured, "-dir: stat nosuch", "-dir=nosuch")
}
