package isolate

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal opens a terminal of 24 lines. A test reads the terminal's output from controller, and writes
// keys to it.
func Terminal(t *testing.T, columns uint16) (controller, terminal *os.File) {
	t.Helper()
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Skipf("there are no pseudo terminals here: %v", err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	controller = open("/dev/ptmx")
	fd := int(controller.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal = open(fmt.Sprintf("/dev/pts/%d", number))
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return controller, terminal
}
