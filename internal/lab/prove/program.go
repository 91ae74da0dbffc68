package prove

import (
	"context"
	"os/exec"
	"time"
)

// A Program is anybody's, which is crashed. It prints a line "ack N" when its record N is where
// the end of the program takes it no more, with N = 1, 2, 3 and so on. Run again, it goes on
// behind the last record that is there.
type Program struct {
	Command string // for the shell, which runs it in an empty directory
	Read    string // prints the numbers of the records that are there, a line each
	Dir     string // where that directory is made; "" is the system's for temporary files
	Time    time.Duration
	Seed    uint64
	Level   Level // Kill, if it is "", Fault or PowerCut
	// Start is instead of Command, and Judge instead of the numbers that are printed and read.
	// Each directory has a judge of its own.
	Start func(ctx context.Context, dir string) *exec.Cmd `json:"-"`
	Judge func() Judge                                    `json:"-"`
	Again bool                                            // behind each fault it is run again without one
}

// A Judge gets what a program has printed until a crash, and what the crash has left of a directory.
// An error says that nothing can be judged.
type Judge func(dir string, printed []byte) (Tally, *Violation, error)
