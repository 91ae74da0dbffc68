package run

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

// inPlaceOf makes a program that prints its arguments and ends with an exit code.
func inPlaceOf(t *testing.T, code string) func(string) (string, error) {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil || runtime.GOOS == "windows" { // wine shows the file, and Windows starts no script
		t.Skip("there is no shell to make a program of")
	}
	return func(name string) (string, error) {
		path := filepath.Join(t.TempDir(), name)
		return path, os.WriteFile(path, []byte("#!/bin/sh\necho got \"$@\"\nexit "+code+"\n"), 0o755)
	}
}

func TestPackagesAreInstalledByRootAlone(t *testing.T) {
	nowhere := func(string) (string, error) { return "", exec.ErrNotFound }
	check := func(i installer, want, hint string) {
		t.Helper()
		err := i.install(t.Context(), []string{"a", "b"})
		var r *cli.Refusal
		if !errors.As(err, &r) || !strings.Contains(r.Error(), want) || !strings.Contains(r.Hint, hint) {
			t.Errorf("got %v, want %q and the hint %q", err, want, hint)
		}
	}
	check(installer{true, nowhere, io.Discard}, "--install needs apt-get, which this system lacks, to install a, b", "own package manager")
	check(installer{false, inPlaceOf(t, "0"), io.Discard}, "only root can install a, b", "run: sudo apt-get install -y a b")
	check(installer{true, inPlaceOf(t, "1"), io.Discard}, "apt-get install -y a b: exit status 1", "apt-get update")

	var told bytes.Buffer
	if err := (installer{true, inPlaceOf(t, "0"), &told}).install(t.Context(), []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	if want := "holdfast: apt-get install -y a b\ngot install -y a b\n"; told.String() != want {
		t.Errorf("told %q, want %q", told.String(), want)
	}
}
