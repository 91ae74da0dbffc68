package uml

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A console keeps the last lines that the guest's kernel and its init have printed, and
// passes every line on. It is for one goroutine.
type console struct {
	next  func(line string) // or nil
	heard func()            // is called with each line, or nil
	part  []byte            // of a line
	lines []string          // the last
	panic string            // why the kernel says that it stopped
	cause string            // why the program says that it ended, before that
}

// consoleLines are enough for a kernel's last lines and for the program's before them.
const consoleLines = 40

// Write reads the next bytes; it never fails, so that the reader never stops the guest.
func (c *console) Write(p []byte) (int, error) {
	c.part = append(c.part, p...)
	for {
		line, rest, found := bytes.Cut(c.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		c.part = rest
		if c.heard != nil {
			c.heard()
		}
		text := strings.TrimRight(string(line), "\r")
		if text == beat {
			continue
		}
		if c.next != nil {
			c.next(text)
		}
		if len(c.lines) == consoleLines {
			c.lines = slices.Delete(c.lines, 0, 1)
		}
		c.lines = append(c.lines, text)
		if _, why, found := strings.Cut(text, "Kernel panic - not syncing: "); found && c.panic == "" {
			c.panic = strings.TrimSpace(why)
		}
		if c.cause == "" && c.panic == "" && (strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")) {
			c.cause = text
		}
	}
}

// end returns one clause: why a guest ended that has not reported how.
func (c *console) end() string {
	switch {
	case c.panic != "" && c.cause != "":
		return fmt.Sprintf("the program inside ended with %q, and so its kernel with %q", c.cause, c.panic)
	case c.panic != "":
		return fmt.Sprintf("its kernel stopped: %s", c.panic)
	case len(c.lines) > 0:
		return fmt.Sprintf("it ended before its program said anything; its last line was %q", c.lines[len(c.lines)-1])
	}
	return "it ended and said nothing"
}
