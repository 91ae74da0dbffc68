package live

import (
	"os"

	"golang.org/x/sys/windows"
)

// canDraw makes the console obey the sequences, as older ones do only when they are asked.
func canDraw(f *os.File) bool {
	console, mode := windows.Handle(f.Fd()), uint32(0)
	return windows.GetConsoleMode(console, &mode) == nil && windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
