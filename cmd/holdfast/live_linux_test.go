package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/terminaltest"
)

// TestLiveStopsByAKeyAndKeeps runs bench on a terminal of its own, and stops it when a round is drawn.
func TestLiveStopsByAKeyAndKeeps(t *testing.T) {
	isolate.Once(t)
	check := func(name string, code int, stop func(c *exec.Cmd, controller *os.File) error) {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			controller, terminal := terminaltest.Open(t, 100)
			before := terminaltest.Mode(t, terminal)
			dir := t.TempDir()
			c := exec.Command(self, "bench", "--live", "--dir", dir, "--allow-tmpfs", "--time", "1s", "--rounds", "1000", "--writers", "1",
				"--policy", "buffer=4KiB", "--policy", "sync=group")
			c.Env = append(os.Environ(), asCommand+"=1", "TERM=xterm", "LC_ALL=C.UTF-8")
			c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			drawn := regexp.MustCompile(`1 x buffer=4KiB,sync=never of 128B +[0-9.]+[nµm]?s +[0-9.]+[nµm]?s  [▁▂▃▄▅▆▇█]{2}`)
			for piece := make([]byte, 4096); !drawn.MatchString(all.String()); {
				n, err := controller.Read(piece)
				if err != nil {
					t.Fatalf("%v after %q", err, all.String())
				}
				all.Write(piece[:n])
			}
			if terminaltest.Mode(t, terminal) == before {
				t.Error("keys come by whole lines")
			}
			if err := stop(c, controller); err != nil {
				t.Fatal(err)
			}
			const last = "that is all"
			rest := make(chan string)
			go func() {
				var text strings.Builder
				for piece := make([]byte, 4096); !strings.Contains(text.String(), last); {
					n, err := controller.Read(piece)
					if err != nil {
						break
					}
					text.Write(piece[:n])
				}
				rest <- text.String()
			}()
			_ = c.Wait()
			if got := c.ProcessState.ExitCode(); got != code {
				t.Errorf("exit code %d, want %d", got, code)
			}
			if terminaltest.Mode(t, terminal) != before {
				t.Error("the terminal is not as it was")
			}
			if _, err := io.WriteString(terminal, last); err != nil {
				t.Fatal(err)
			}
			text := all.String() + <-rest
			screen, after, left := strings.Cut(text, "\x1b[?25h\x1b[?1049l")
			if !strings.Contains(screen, "q stops, and keeps what is measured") || !left || strings.Contains(after, "\x1b") {
				t.Errorf("the screen was\n%q", text)
			}
			for _, want := range []string{"holdfast: plan: ", "holdfast: ended after ", "not complete: interrupted", "128B records, 1 writer", "holdfast: interrupted after "} {
				if !strings.Contains(after, want) {
					t.Errorf("afterwards it did not say %q:\n%s", want, after)
				}
			}
			for line := range strings.Lines(after) {
				if utf8.RuneCountInString(strings.TrimRight(line, "\r\n")) > 100 {
					t.Errorf("wider than the terminal: %q", line)
				}
			}
			nothingIn(t, dir)
		})
	}
	key := func(text string) func(*exec.Cmd, *os.File) error {
		return func(_ *exec.Cmd, controller *os.File) error {
			_, err := controller.WriteString(text)
			return err
		}
	}
	check("q", 130, key("q"))
	check("Ctrl-C", 130, key("\x03"))
	check("SIGTERM", 143, func(c *exec.Cmd, _ *os.File) error { return c.Process.Signal(syscall.SIGTERM) })
}
