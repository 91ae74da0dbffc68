package copies

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) {
	command.Serve(Kind)
	os.Exit(isolate.Tests{M: m}.Run())
}

// TestQuickRunComparesEverybody runs every race once, and looks for a figure of each
// arm that is installed.
func TestQuickRunComparesEverybody(t *testing.T) {
	var out, talk bytes.Buffer
	err := runKind(context.Background(), []string{"-quick", "-rounds", "1", "-cache", "warm", "-run", "1KiB|1MiB|directory|sparse", "-dir", t.TempDir()}, &out, &talk)
	if err != nil {
		t.Fatalf("%v\n%s", err, &talk)
	}
	for _, want := range []string{"## 1KiB/warm", "## 1MiB/warm", "## directory/warm", "## sparse/warm", "| cp |", "| os.CopyFS |", "| holdfast command |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "| holdfast | does not count") || strings.Contains(out.String(), "| holdfast command | does not count") {
		t.Errorf("ours does not count:\n%s", &out)
	}
}

func TestWrongCopyDoesNotCount(t *testing.T) {
	j := job{name: "two", files: 2, size: 3 * kib, data: 3 * kib}
	check := func(what string, spoil func(t *testing.T, dir string), want string) {
		t.Helper()
		from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
		if err := errors.Join(j.lay(from), os.CopyFS(to, os.DirFS(from))); err != nil {
			t.Fatal(err)
		}
		if err := j.verify(from, to); err != nil {
			t.Fatalf("a right copy: %v", err)
		}
		spoil(t, to)
		if err := j.verify(from, to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	write := func(name, text string, size int64) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(path, []byte(text), 0o666), os.Truncate(path, size)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("other bytes", write("file-00001", "other", j.size), "differs")
	check("a short one", write("file-00001", "", 5), "has 5 bytes")
	check("one too many", write("file-00002", "", 5), "3 copies")
	check("one missing", func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, "file-00000")); err != nil {
			t.Fatal(err)
		}
	}, "no such file")
}

func TestFilledHolesDoNotCount(t *testing.T) {
	dir := t.TempDir()
	j := job{name: "holes", files: 1, size: 8 * mib, data: 2 * pieceSize}
	if err := j.lay(filepath.Join(dir, "from")); err != nil {
		t.Fatal(err)
	}
	if err := eachFile(bufferCopy)(context.Background(), j, filepath.Join(dir, "from"), filepath.Join(dir, "to")); err != nil {
		t.Fatal(err)
	}
	if err := j.verify(filepath.Join(dir, "from"), filepath.Join(dir, "to")); !errors.Is(err, errFilled) {
		t.Errorf("%v, want %v", err, errFilled)
	}
}

func TestUsageIsShown(t *testing.T) {
	check := func(args ...string) {
		t.Helper()
		var usage *command.UsageError
		err := runKind(context.Background(), args, new(bytes.Buffer), new(bytes.Buffer))
		if !errors.As(err, &usage) {
			t.Errorf("%q: %v, want a usage error", args, err)
		}
	}
	check("-fs", "ext5")
	check("-cache", "hot")
	check("-run", "no such arm")
}
