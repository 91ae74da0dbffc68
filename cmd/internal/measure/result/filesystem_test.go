package result_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
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
			run.Trials = append(run.Trials, &result.Trial{Cell: c.Name, Round: round, Position: i + 1,
				Measurement: result.Measurement{Records: 1, Elapsed: seconds * time.Second}})
		}
	}
	return run
}

func kind(name string) result.FileSystem {
	return result.FileSystem{Name: name, How: "in an image", Machine: []machine.Fact{{Name: "file system", Value: name}}}
}

// placed turns a run into a run on several file systems, with only this one: the inverse of
// [result.Run.On].
func placed(r result.Run, made result.FileSystem) result.Run {
	cells, missing, trials := r.Header.Cells, r.Header.Missing, r.Trials
	r.Header.Cells, r.Header.Missing, r.Trials = nil, nil, nil
	for _, c := range cells {
		r.Header.Cells = append(r.Header.Cells, c.Placed(made.Name))
	}
	for _, m := range missing {
		r.Header.Missing = append(r.Header.Missing, m.Placed(made.Name))
	}
	for _, t := range trials {
		named := *t
		named.Cell = result.Named(made.Name, t.Cell)
		r.Trials = append(r.Trials, &named)
	}
	r.Header.FileSystems = []result.FileSystem{made}
	return r
}

// joined merges runs on several file systems into one: rounds of the same number become one round.
func joined(runs ...result.Run) result.Run {
	one := runs[0]
	h := &one.Header
	for _, r := range runs[1:] {
		for _, t := range r.Trials {
			after := *t
			after.Position += len(h.Cells)
			one.Trials = append(one.Trials, &after)
		}
		h.Cells = append(h.Cells, r.Header.Cells...)
		h.Missing = append(h.Missing, r.Header.Missing...)
		h.FileSystems = append(h.FileSystems, r.Header.FileSystems...)
		h.Plan.Rounds = min(h.Plan.Rounds, r.Header.Plan.Rounds)
		h.Plan.Estimate += r.Header.Plan.Estimate
		h.Plan.Size += r.Header.Plan.Size
		h.Plan.Room += r.Header.Plan.Room
		h.Plan.Files += r.Header.Plan.Files
	}
	slices.SortStableFunc(one.Trials, func(a, b *result.Trial) int { return a.Round - b.Round })
	if one.End != nil {
		end := *one.End
		end.Rounds, end.Elapsed = one.Rounds(), end.Elapsed*time.Duration(len(runs))
		one.End = &end
	}
	return one
}

// both is one run on ext4 and xfs.
func both(ext4, xfs result.Run) result.Run {
	return joined(placed(ext4, kind("ext4")), placed(xfs, kind("xfs")))
}

func TestOnGivesBackWhatWasPlaced(t *testing.T) {
	for _, run := range []result.Run{placed(alone(2, 3), kind("xfs")), both(alone(2, 1), alone(2, 3))} {
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
	run := both(alone(1, 1), alone(1, 1))
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
	run := both(alone(3, 1), alone(2, 1))
	if run.Rounds() != 2 || run.On("ext4").Rounds() != 2 || run.End.Rounds != 2 {
		t.Errorf("%d rounds, on ext4 %d, and the end has %d", run.Rounds(), run.On("ext4").Rounds(), run.End.Rounds)
	}
}

func TestRunOnSeveralIsReadAsItWasWritten(t *testing.T) {
	run := both(alone(2, 1), alone(2, 2))
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
