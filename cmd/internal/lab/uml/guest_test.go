package uml

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestGuestHasNoDiskThatDropsFlushes(t *testing.T) {
	args := Guest{Command: "inside", Memory: 300 << 20}.arguments()
	for _, want := range []string{"mem=300M", "initrd=initramfs", "rdinit=/init", "uml_dir=.", "inside"} {
		if !slices.Contains(args, want) {
			t.Errorf("%q is not among %q", want, args)
		}
	}
	for _, a := range args {
		if strings.HasPrefix(a, "ubd") {
			t.Errorf("%q drops flushes", a)
		}
	}
	if args := (Guest{}).arguments(); args[0] != "mem=512M" {
		t.Errorf("the memory is %s, want that of Guest's comment", args[0])
	}
}

func TestCommandThatTheKernelWouldTakeIsRefused(t *testing.T) {
	check := func(command string, good bool) {
		t.Helper()
		if err := (Guest{Command: command}).check(); (err == nil) != good {
			t.Errorf("%q: %v", command, err)
		}
	}
	check("uml-guest", true)
	check("", false)
	check("two words", false)
	check("a=b", false)
	check("a.b", false)
}

func TestConsoleReportsWhyTheGuestEnded(t *testing.T) {
	check := func(printed, want string) {
		t.Helper()
		c := &console{}
		// A byte at a time, as a pipe may hand it over.
		for i := range printed {
			if _, err := io.WriteString(c, printed[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.end(); got != want {
			t.Errorf("%q: %q, want %q", printed, got, want)
		}
	}
	check("", "it ended and said nothing")
	check("one\r\ntwo\n", `it ended before its program said anything; its last line was "two"`)
	check("[ 1.0] Kernel panic - not syncing: no init found. Try\nCPU: 0\n", "its kernel stopped: no init found. Try")
	check("panic: boo\n\nKernel panic - not syncing: Attempted to kill init!\nKernel panic - not syncing: twice\n",
		`the program inside ended with "panic: boo", and so its kernel with "Attempted to kill init!"`)
}

func TestConsoleKeepsTheLastLinesAndHandsOnAll(t *testing.T) {
	var all []string
	c := &console{next: func(line string) { all = append(all, line) }}
	text := strings.Repeat("line\n", consoleLines) + "last\n"
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if len(c.lines) != consoleLines || c.lines[consoleLines-1] != "last" || len(all) != consoleLines+1 {
		t.Errorf("kept %d lines, the last is %q; handed on %d", len(c.lines), c.lines[len(c.lines)-1], len(all))
	}
}
