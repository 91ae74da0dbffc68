package prove

import (
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
	Level   Level // Kill, if it is "", or Fault
}
