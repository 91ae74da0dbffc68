package uml

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A console keeps the end of what the guest's kernel and its init have told, and
// hands every line on. It is for one goroutine.
type console struct {
	next  func(line string) // or nil
	part  []byte            // of a line
	lines []string          // the last
	panic string            // what the kernel said of its end
	cause string            // what the program said of its own, before
}

// consoleLines are enough for a kernel's last words and for the program's before.
const consoleLines = 40

// Write takes the next bytes; it never fails, so that the guest is never stopped by
// who reads.
func (c *console) Write(p []byte) (int, error) {
	c.part = append(c.part, p...)
	for {
		line, rest, found := bytes.Cut(c.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		c.take(strings.TrimRight(string(line), "\r"))
		c.part = rest
	}
}

func (c *console) take(line string) {
	if c.next != nil {
		c.next(line)
	}
	if len(c.lines) == consoleLines {
		c.lines = slices.Delete(c.lines, 0, 1)
	}
	c.lines = append(c.lines, line)
	if _, why, found := strings.Cut(line, "Kernel panic - not syncing: "); found && c.panic == "" {
		c.panic = strings.TrimSpace(why)
	}
	if c.cause == "" && c.panic == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")) {
		c.cause = line
	}
}

// end says in one clause why a guest ended that has not told how.
func (c *console) end() string {
	switch {
	case c.panic != "" && c.cause != "":
		return fmt.Sprintf("the program inside ended with %q, and so its kernel with %q", c.cause, c.panic)
	case c.panic != "":
		return fmt.Sprintf("its kernel stopped: %s", c.panic)
	case len(c.lines) > 0:
		return fmt.Sprintf("it ended without a word of its program; its last line was %q", c.lines[len(c.lines)-1])
	}
	return "it ended without a word"
}
