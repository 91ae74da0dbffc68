package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestFaultOfAnotherSystemIsFound has a package that this system compiles, and that does not
// type-check, or does not pass vet, on another.
func TestFaultOfAnotherSystemIsFound(t *testing.T) {
	check := func(what, name, text string, faults bool) {
		t.Helper()
		dir := t.TempDir()
		for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.25\n", "m.go": "package m\n", name: text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		t.Chdir(dir)
		here, failure := filesHere([]string{"./..."})
		found, err := faultsOn("windows/arm64", here, []string{"./..."})
		if err = errors.Join(failure, err); err != nil || (found > 0) != faults {
			t.Errorf("%s: %d faults, %v", what, found, err)
		}
	}
	check("sound", "x_windows.go", "package m\n\nvar X = 1\n", false)
	check("no type", "x_windows.go", "package m\n\nvar X int = \"\"\n", true)
	check("no type in a test", "x_windows_test.go", "package m\n\nvar X int = \"\"\n", true)
	check("a constant too large for it", "x_arm64.go", "package m\n\nvar X uintptr = 1 << 64\n", true)
	check("vet", "x_windows.go", "package m\n\nfunc F(x int) { x = x }\n", true)
	check("of another system", "x_linux.go", "package m\n\nvar X int = \"\"\n", false)
	if _, err := faultsOn("windows", nil, []string{"./..."}); err == nil {
		t.Error("a system without a processor is taken")
	}
}
