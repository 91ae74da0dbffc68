package result_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
)

// alone is a run of two cells and a twin on one file system, in rounds of some seconds.
func alone(rounds int, seconds time.Duration) result.Run {
	run := result.Run{
		Header: result.Header{
			SchemaVersion: result.SchemaVersion, Study: "lines", Plan: result.Plan{Rounds: rounds},
			Machine: []machine.Fact{{Name: "CPUs", Value: "2"}, {Name: "file system", Value: "ext4"}},
			Cells:   []result.Cell{{Name: "a", Group: "g"}, {Name: "b", Group: "g"}, {Name: "a/again", Twin: "a", Group: "g"}},
			Missing: []result.Missing{{Cell: "c", Why: "it is not here"}},
		},
		End: &result.End{State: result.Complete, Rounds: rounds, Elapsed: time.Second},
	}
	for round := range rounds + 1 {
		for i, c := range run.Header.Cells {
			run.Trials = append(run.Trials, result.Trial{Cell: c.Name, Round: round, Position: i + 1,
				Measurement: result.Measurement{Records: 1, Elapsed: seconds * time.Second}})
		}
	}
	return run
}

func kind(name string) result.FileSystem {
	return result.FileSystem{Name: name, How: "in an image", Machine: []machine.Fact{{Name: "file system", Value: name}}}
}

// both is one run on ext4 and xfs.
func both(t *testing.T, ext4, xfs result.Run) result.Run {
	t.Helper()
	run, err := result.Merge(ext4.As(kind("ext4")), xfs.As(kind("xfs")))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestOnGivesBackWhatAsHasPlaced(t *testing.T) {
	for _, run := range []result.Run{alone(2, 3).As(kind("xfs")), both(t, alone(2, 1), alone(2, 3))} {
		got, want := run.On("xfs"), alone(2, 3)
		want.Header.Machine[1].Value = "xfs"
		for i := range got.Trials {
			got.Trials[i].Position = want.Trials[i].Position
		}
		if !reflect.DeepEqual(got.Header.Cells, want.Header.Cells) || !reflect.DeepEqual(got.Header.Missing, want.Header.Missing) || !reflect.DeepEqual(got.Trials, want.Trials) {
			t.Errorf("it is\n%+v\nwant\n%+v", got, want)
		}
		if !reflect.DeepEqual(got.Header.Machine, want.Header.Machine) || got.Header.FileSystems != nil || got.FileSystems() != nil {
			t.Errorf("the header is %+v", got.Header)
		}
	}
}

func TestCellsOfTwoFileSystemsHaveNamesOfTheirOwn(t *testing.T) {
	run := both(t, alone(1, 1), alone(1, 1))
	if names := run.FileSystems(); !reflect.DeepEqual(names, []string{"ext4", "xfs"}) {
		t.Errorf("the file systems are %q", names)
	}
	c := run.Header.Cells[5]
	if c.Name != "xfs: a/again" || c.Twin != "xfs: a" || c.FileSystem != "xfs" || c.Group != "g" {
		t.Errorf("%+v", c)
	}
	seen := map[[2]int]bool{}
	for _, trial := range run.Trials {
		at := [2]int{trial.Round, trial.Position}
		if seen[at] {
			t.Errorf("two trials are at round %d, position %d", at[0], at[1])
		}
		seen[at] = true
	}
}

func TestOnlyRoundsThatAreWholeOnAllAreInAPart(t *testing.T) {
	run := both(t, alone(3, 1), alone(2, 1))
	if run.Rounds() != 2 || run.On("ext4").Rounds() != 2 || run.End.Rounds != 2 {
		t.Errorf("%d rounds, on ext4 %d, and the end has %d", run.Rounds(), run.On("ext4").Rounds(), run.End.Rounds)
	}
}

func TestMergeRefusesWhatIsNotOneRun(t *testing.T) {
	other := alone(1, 1).As(kind("xfs"))
	other.Header.Study = "locks"
	for name, runs := range map[string][]result.Run{
		"none": {}, "another study": {alone(1, 1).As(kind("ext4")), other}, "the same twice": {alone(1, 1).As(kind("ext4")), alone(1, 1).As(kind("ext4"))},
	} {
		if _, err := result.Merge(runs...); !errors.Is(err, result.ErrNotOne) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMergedRunEndsLikeTheWorstOfThem(t *testing.T) {
	broken, killed := alone(1, 1), alone(1, 1)
	broken.End.State, killed.End = result.Interrupted, nil
	if run := both(t, alone(1, 1), broken); run.End.State != result.Interrupted || run.Complete() {
		t.Errorf("the end is %+v", run.End)
	}
	if run := both(t, killed, alone(1, 1)); run.End != nil {
		t.Errorf("the end is %+v", run.End)
	}
}

func TestRunOnSeveralIsReadAsItWasWritten(t *testing.T) {
	run := both(t, alone(2, 1), alone(2, 2))
	var b bytes.Buffer
	if err := result.Write(&b, run); err != nil {
		t.Fatal(err)
	}
	got, err := result.Read(&b)
	if err != nil || !reflect.DeepEqual(got.Header, run.Header) || got.On("xfs").Rounds() != 2 {
		t.Errorf("%v\n%+v", err, got.Header)
	}
}

func TestFileSystemKeepsTheFactsThatAreOthersThere(t *testing.T) {
	host := []machine.Fact{{Name: "CPUs", Value: "2"}, {Name: "file system", Value: "ext4"}}
	there := []machine.Fact{{Name: "CPUs", Value: "2"}, {Name: "file system", Value: "xfs"}}
	made := result.NewFileSystem("xfs", "in an image", 1, host, there)
	if !reflect.DeepEqual(made.Machine, there[1:]) {
		t.Errorf("it keeps %v", made.Machine)
	}
}
