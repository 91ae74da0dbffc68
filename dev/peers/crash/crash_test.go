package crash

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) {
	syscallfault.Launch()
	command.Serve(Kind)
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

// TestProgramsLoseWhatTheyDocument crashes each program at each level for a short time.
func TestProgramsLoseWhatTheyDocument(t *testing.T) {
	dir := t.TempDir()
	if memory, err := os.MkdirTemp("/dev/shm", "crash-"); err == nil { // nothing here needs a disk
		dir = memory
		t.Cleanup(func() { _ = os.RemoveAll(memory) })
	}
	for _, p := range programs {
		for _, level := range levels {
			if level == crash.Fault && slices.Contains(p.may, level) {
				continue // whatever a failed call takes is as documented, and kills and power cuts show that it runs
			}
			t.Run(p.name+", "+p.setting+", "+string(level), func(t *testing.T) {
				t.Parallel()
				if p.needs != "" && level == crash.Fault {
					t.Skip("a commit starts so many processes that six faults take seconds: the command gives them")
				}
				if p.slow {
					t.Skip("its start takes seconds behind each crash: the command crashes it")
				}
				must := slices.Contains(p.lost, level)
				var v *crash.Verdict
				lost := false
				for try := 0; try == 0 || must && !lost && try < 5; try++ { // one crash may find all on the disk
					var err error
					v, err = p.crash(t.Context(), level, dir, time.Nanosecond)
					if errors.Is(err, errNotJudged) {
						t.Skip(err)
					}
					if err != nil {
						t.Fatal(err)
					}
					if lost = v.Failure != nil; lost {
						t.Log(v.Failure.Words)
					}
				}
				if lost != must && !slices.Contains(p.may, level) {
					t.Errorf("it has lost something: %v; %d crashes, %d faults, %d acknowledged", lost, v.Kills, v.Faults, v.Tally.Acknowledged)
				}
			})
		}
	}
}
