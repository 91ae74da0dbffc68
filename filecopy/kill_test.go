//go:build unix

package filecopy_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/filecopy"
)

// killedCopier is the name of the environment variable that makes the test below be the
// process that is killed: a directory.
const killedCopier = "HOLDFAST_TEST_KILLED_COPIER"

// TestKilledCopyLeavesOldOrNew kills a process that replaces a file by copies of two
// others, again and again, and looks what the file holds.
func TestKilledCopyLeavesOldOrNew(t *testing.T) {
	if dir := os.Getenv(killedCopier); dir != "" {
		t.Fatal(copyUntilKilled(dir))
	}
	dir := t.TempDir()
	contents := [2][]byte{bytes.Repeat([]byte("one"), 1<<18), bytes.Repeat([]byte("two!"), 1<<18)}
	for i, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), contents[i], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for acks := range 10 {
		killCopier(t, dir, 1+acks)
		got, err := os.ReadFile(filepath.Join(dir, "dst"))
		if err != nil || !bytes.Equal(got, contents[0]) && !bytes.Equal(got, contents[1]) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
}

// copyUntilKilled writes a byte for each copy to its standard output.
func copyUntilKilled(dir string) error {
	for i := 0; ; i++ {
		src := filepath.Join(dir, string(rune('a'+i%2)))
		if _, err := filecopy.File(context.Background(), filepath.Join(dir, "dst"), src, filecopy.Options{}); err != nil {
			return err
		}
		fmt.Print(".")
	}
}

// killCopier kills the copier after some copies, in the middle of another.
func killCopier(t *testing.T, dir string, acks int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(exe, "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), killedCopier+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, acks)); n == 0 || err != nil {
		t.Errorf("it copied nothing: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	cmd.Wait() // it was killed
}
