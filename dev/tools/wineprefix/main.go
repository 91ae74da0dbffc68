// Command wineprefix makes a directory in which wine runs tests that Go built for Windows: a prefix
// of wine, with the two things in it that Go asks of Windows and wine 8 does not have. It takes wine
// and go from PATH. See docs/install.md.
//
//	wineprefix DIR
//	export WINEPREFIX=DIR WINEDEBUG=-all
//	GOOS=windows go test -overlay DIR/overlay.json -exec wine ./...
//
// Go's runtime does not start without ProcessPrng of bcryptprimitives.dll, which later wines have. A
// DLL that forwards it is put beside wine's own.
//
// os.RemoveAll, and so the end of each test that has a directory, fails with "Invalid function": wine
// 8 answers a call that it does not know with a status that Go does not take for that. Go has another
// way for old Windows, and a switch in its own tests to take it. The overlay turns it on when a test
// starts, by a file more in package testing.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: wineprefix directory")
		os.Exit(2)
	}
	if err := prepare(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "wineprefix:", err)
		os.Exit(1)
	}
}

func prepare(dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err == nil {
		err = boot(dir)
	}
	if err != nil {
		return err
	}
	dll := filepath.Join(dir, "drive_c", "windows", "system32", "bcryptprimitives.dll")
	if _, err := os.Lstat(dll); errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(dll, forwarder("bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036"), 0o666)
		if err != nil {
			return err
		}
	}
	return overlay(dir)
}

// boot lets wine fill the directory. Its server is left running, since a new one takes a second. It
// ends when nothing has run for a minute.
func boot(dir string) error {
	// A file, not a pipe: the server has it open as long as it runs, and nobody waits for that.
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		return err
	}
	defer said.Close()
	for _, command := range [][]string{{"wineserver", "-p60"}, {"wineboot", "--init"}} {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, command[0], command[1:]...)
		c.Stdout, c.Stderr = said, said
		// Without these two wine asks whether it may fetch what programs of .NET and pages need.
		c.Env = append(os.Environ(), "WINEPREFIX="+dir, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=")
		if err := c.Run(); err != nil {
			text, _ := os.ReadFile(said.Name())
			return fmt.Errorf("%v: %w: %s", command, err, bytes.TrimSpace(text))
		}
	}
	return nil
}

// removeAll is the file more in package testing.
const removeAll = `package testing

import "internal/syscall/windows"

func init() { windows.TestDeleteatFallback = true }
`

func overlay(dir string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	file := filepath.Join(dir, "removeall_windows.go")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(string(bytes.TrimSpace(root)), "src", "testing", filepath.Base(file)): file,
	}})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(file, []byte(removeAll), 0o666), os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o666))
}
