package uml

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// A Guest is the program to run inside: this one with one argument, as the only process.
type Guest struct {
	Command string        // the argument: a command that calls [Enter]
	Task    []byte        // Enter's result inside
	Modules []string      // of the kernel, by name; built-in ones do no harm
	Memory  int64         // bytes; 0 is 512 MiB
	Share   string        // a directory outside that the guest may read and write
	Tools   bool          // the guest's root is the one outside, which it only reads: its programs run inside; there is no Share then
	Limit   time.Duration // after which the guest is killed; 0 is never
	Silence time.Duration // after which a guest that prints nothing is killed; 0 is never. Otherwise Enter prints signs of life.
	Console func(line string)
	Line    *os.File // the guest's end of a line of [NewLine]; Run closes it. Nil is none.
}

// A GuestError is the error that the program inside returned.
type GuestError struct{ Text string }

func (e *GuestError) Error() string { return e.Text }

// A CrashError reports a guest that ended, or was killed, before its program reported
// how.
type CrashError struct {
	Why     string
	Console []string // the last lines
}

func (e *CrashError) Error() string { return "User-Mode Linux: " + e.Why }

// A beat is the line that the program inside prints as a sign of life.
const beat = "uml: alive"

// Names in the boot directory.
const (
	outcomeName = "outcome.json"
	initrdName  = "initramfs"
	guestName   = "guest" // of the guest's own directory, with its process number and its socket
)

const defaultMemory = 512 << 20

// lineDescriptor is the line's descriptor in the kernel's process: the first of
// [exec.Cmd]'s ExtraFiles.
const lineDescriptor = 3

// arguments returns the kernel's command line. The kernel starts in the boot directory, and the
// names are relative to it: a socket's path must be short (unix(7): 108 bytes).
func (g Guest) arguments() []string {
	memory := g.Memory
	if memory == 0 {
		memory = defaultMemory
	}
	line := "ssl0=null"
	if g.Line != nil {
		line = fmt.Sprintf("ssl0=fd:%d", lineDescriptor)
	}
	return []string{
		fmt.Sprintf("mem=%dM", max(1, memory>>20)),
		"initrd=" + initrdName, "rdinit=" + initPath,
		"con=null", "con0=null,fd:1", "ssl=null", line,
		"uml_dir=.", "umid=" + guestName,
		"quiet", "random.trust_cpu=on",
		"LD_LIBRARY_PATH=" + libraryPath,
		g.Command, // the kernel passes on arguments that it does not know
	}
}

// check refuses a command that the kernel's command line can't hold.
func (g Guest) check() error {
	if g.Command == "" || strings.ContainsAny(g.Command, " =.\"\\") {
		return fmt.Errorf("uml: %q can't be an argument of the guest's program", g.Command)
	}
	return nil
}
