package crash

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// A Program is anybody's, which is crashed. It prints a line "ack N" when the end of the program
// can no longer take record N away. N is 1, 2, 3 and so on. Run again, it goes on behind the last
// record that it finds.
type Program struct {
	Command string // for the shell, which runs it in an empty directory
	Read    string // prints the numbers of the records that it finds, a line each
	Dir     string // where that directory is made; "" is the system's for temporary files
	Time    time.Duration
	Seed    uint64
	Level   Level // Kill, if it is "", Fault or PowerCut
	// Start is instead of Command, and Judge instead of the numbers that are printed and read.
	// Each directory begins with that judge.
	Start    func(ctx context.Context, dir string) *exec.Cmd `json:"-"`
	Judge    Judge                                           `json:"-"`
	Again    bool                                            // behind each fault it is run again without one
	Naming   bool                                            // level power: as in [Log]
	patience time.Duration                                   // instead of hangPatience, in tests
	// Say, if there is one, is told what a run waits for that takes long.
	Say func(string) `json:"-"`
}

// A Judge gets a program's output since the judge's moment, and a directory after a crash. It returns the judge of
// the next life, and stays unchanged. A line [NewLife] stands where the program was killed and started again. An
// error says that nothing can be judged.
type Judge func(dir string, printed []byte) (Tally, *Violation, Judge, error)

// NewLife is a line of its own in the output of more than one life of a program.
const NewLife = "life"

// Words says what is wrong, as its author knows the records.
func (p Program) Words(v *Violation, c *Checker) string {
	if v.Rule == "lost" {
		return fmt.Sprintf("it had printed ack %d, and only the records up to %d are there", max(c.known[0][Flushed], c.known[0][Durable]), v.N)
	}
	return fmt.Sprintf("behind record %d stands one that does not follow it", v.N)
}

// anyBegun says that any record may be there: a program does not say what it begins.
var anyBegun = Note{Kind: Begun, N: 1<<63 - 1}
