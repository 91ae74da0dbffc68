package files

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// TestMain lets the test binary be the process that a trial is.
func TestMain(m *testing.M) {
	command.Serve(Kind)
	os.Exit(isolate.Tests{M: m}.Run())
}

// TestEveryArmWritesWhatItIsTo runs each arm on a small job of its group's kind.
func TestEveryArmWritesWhatItIsTo(t *testing.T) {
	t.Parallel()
	for _, g := range groups(sizes{Quick: true}) {
		for _, a := range g.Arms {
			t.Run(g.Name+"/"+a.Name, func(t *testing.T) {
				j := g.Job.small()
				j.Files = min(j.Files, 20)
				j.Lines = min(j.Lines, 50) // the last round is not whole
				var s command.Sample
				err := a.Do.clock(filepath.Join(t.TempDir(), "new"), j, &s)
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil || s.Elapsed <= 0 || s.Units != j.units() {
					t.Errorf("%+v, %v", s, err)
				}
			})
		}
	}
}

func TestWrongFilesDoNotCount(t *testing.T) {
	whole, lines := job{Files: 3, Size: 12}, job{Files: 3, Lines: 7, Size: 20}
	check := func(name string, j job, spoil func(s *site) error, want string) {
		t.Helper()
		right := inTurn(osWrite)
		if j.Lines > 0 {
			right = openAppendClose
		}
		h := how{ready: now(func(s *site) error { return errors.Join(right(s), spoil(s)) })}
		err := h.clock(filepath.Join(t.TempDir(), "new"), j, &command.Sample{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	flip := func(s *site) error {
		data, err := os.ReadFile(s.paths[1])
		data[len(data)-2] ^= 1
		return errors.Join(err, os.WriteFile(s.paths[1], data, 0o666))
	}
	check("nothing", whole, func(*site) error { return nil }, "")
	check("nothing", lines, func(*site) error { return nil }, "")
	check("flip", whole, flip, "file 1 holds")
	check("flip", lines, flip, "file 1 holds")
	check("lost", whole, func(s *site) error { return os.Remove(s.paths[2]) }, "2 files are in the directory, not 3")
	check("one more", whole, func(s *site) error { return os.WriteFile(s.paths[2]+"x", nil, 0o666) }, "4 files are in the directory, not 3")
	check("short", whole, func(s *site) error { return os.Truncate(s.paths[0], 11) }, "file 0 holds")
	check("short", lines, func(s *site) error { return os.Truncate(s.paths[0], 59) }, "where line 6 is to be")
	check("long", lines, func(s *site) error { return appendOnce(s.paths[0], []byte("x")) }, "1 bytes too many")
	check("swapped", whole, func(s *site) error {
		return errors.Join(os.Rename(s.paths[0], s.dir+"/x"), os.Rename(s.paths[1], s.paths[0]), os.Rename(s.dir+"/x", s.paths[1]))
	}, "file 0 holds")
}

func runQuick(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	var out, talk bytes.Buffer
	if err := run(context.Background(), append([]string{"-dir", dir, "-quick", "-rounds", "1"}, args...), &out, &talk); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &talk)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	return out.String()
}

func TestCommandPrintsTablesOfThePickedArms(t *testing.T) {
	t.Parallel()
	out := runQuick(t, "-run", "create/(100|500)/os.WriteFile$")
	for _, want := range []string{"## create/100: 100 new files", "| holdfast (twin) |", "| os.WriteFile |", "Noise floor", "1 rounds in random order", "µs a file as there are more", "last ÷ first"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "errgroup CPUs |") || strings.Contains(out, "does not count") || strings.Contains(out, "durable") {
		t.Errorf("the output has what was not picked, or an arm failed:\n%s", out)
	}
}

func TestFaultsAreShownInATable(t *testing.T) {
	t.Parallel()
	out := runQuick(t, "-run", "faults/(denied|twice|cancel)/(os.WriteFile|holdfast$)")
	for _, want := range []string{
		"## faults/denied", "| os.WriteFile | 998 | 0 | 0 | 2, 2 of 2 paths |", "| holdfast | 998 | 0 | 0 | 2, 2 of 2 paths |",
		"| holdfast | 200 | 0 | 0 | 0 |", "| holdfast | 400 | 0 | 0 |",
	} {
		if runtime.GOOS != "windows" && !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

func TestPeerThatDiesIsReported(t *testing.T) {
	f, _ := findFault("twice", "os.WriteFile")
	s, err := f.watch(context.Background(), t.TempDir(), &peer{name: "nobody"}, func() error { return nil })
	if err != nil || !strings.Contains(s.fate, "died") || !strings.Contains(s.fate, "there is no such thing") {
		t.Errorf("fate %q, %v", s.fate, err)
	}
}

func TestCommandRefuses(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		err := run(context.Background(), args, &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) || command.ExitCode(err) != command.ExitUsage {
			t.Errorf("%q: %v (exit %d), want %q", args, err, command.ExitCode(err), want)
		}
	}
	check("matches no arm", "-run", "nobody")
	check("is not a file system that can be made; use ext2", "-fs", "ext4,ntfs")
}

func TestRunThatWouldFillTheDiskIsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := sys.FreeSpace(dir); err != nil {
		t.Skipf("the free room is not known here: %v", err)
	}
	err := run(context.Background(), []string{"-dir", dir, "-run", "create/5000", "-rounds", "100000000"}, &bytes.Buffer{}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "fewer -rounds") || command.ExitCode(err) != command.ExitUnmeasured {
		t.Errorf("%v (exit %d)", err, command.ExitCode(err))
	}
}
