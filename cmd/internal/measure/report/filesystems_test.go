package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

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

// onTwo is a run on ext4 and xfs, where everything takes three times as long on xfs. The third
// requested file system is missing.
func onTwo(t *testing.T, of func(*testing.T, int) result.Run, rounds int) result.Run {
	t.Helper()
	slow := of(t, rounds)
	for i := range slow.Trials {
		slow.Trials[i].Elapsed *= 3
	}
	made := func(name, options string) result.FileSystem {
		return result.FileSystem{Name: name, How: "in an image of 512 MiB on btrfs, on a loop device with direct I/O", Size: 512 << 20, Machine: []machine.Fact{
			{Name: "file system", Value: name, Source: "/proc/self/mountinfo"}, {Name: "mount options", Value: options, Source: "/proc/self/mountinfo"},
		}}
	}
	run := joined(placed(of(t, rounds), made("ext4", "rw,data=ordered")), placed(slow, made("xfs", "rw,inode64")))
	run.Header.Missing = append(run.Header.Missing, result.Missing{Cell: "jfs", Why: "this kernel has no jfs"})
	return run
}

func TestRunOnTwoFileSystemsGolden(t *testing.T) {
	run := onTwo(t, plantedStudy, 10)
	golden(t, "two_filesystems.txt", text(t, run))
	golden(t, "two_filesystems.md", markdown(t, run))
	golden(t, "two_filesystems_policy.txt", text(t, onTwo(t, planted, 10)))
	golden(t, "two_filesystems.html", body(t, run))
}

// TestRunOnTwoFileSystemsShowsEach: each file system shows the same as a run on it alone.
func TestRunOnTwoFileSystemsShowsEach(t *testing.T) {
	run := onTwo(t, plantedStudy, 10)
	shown := text(t, run)
	for _, table := range strings.Split(text(t, run.On("xfs")), "\n\n") {
		title, rows, _ := strings.Cut(table, "\n")
		if !strings.Contains(title, "here") || !strings.Contains(rows, "\n") {
			continue
		}
		rows, _, _ = strings.Cut(rows, "\n  ") // its notes stand at the first table that has them
		if !strings.Contains(shown, rows) {
			t.Errorf("of both there is no\n%s\nin\n%s", rows, shown)
		}
	}
	for _, once := range []string{"\nnot run: jfs: this kernel has no jfs\n", "\nside by side: ext4 and xfs\n", "\next4\n====\n", "\nxfs\n===\n", "(published: "} {
		if n := strings.Count(shown, once); n == 0 || n > 1 && once[0] == '\n' {
			t.Errorf("%q stands %d times in\n%s", once, n, shown)
		}
	}
}

// TestPoliciesStandSideBySideOnEachFileSystem: a dot for each of the two.
func TestPoliciesStandSideBySideOnEachFileSystem(t *testing.T) {
	_, picture, found := strings.Cut(body(t, onTwo(t, planted, 10)), `aria-label="records a second on each file system: 128B records, 1 writer"`)
	picture, _, _ = strings.Cut(picture, "</svg>")
	for _, series := range []string{`<circle class="s0"`, `<circle class="s1"`} {
		if n := strings.Count(picture, series); !found || n != 5 { // one for each policy, and the legend
			t.Errorf("%d of %s", n, series)
		}
	}
}

func TestEachFileSystemIsAGroupOfItsOwn(t *testing.T) {
	shown := export(t, onTwo(t, planted, 10), report.JSON)
	for _, want := range []string{`"file_system": "ext4"`, `"file_system": "xfs"`, `"file_systems": [`} {
		if !strings.Contains(shown, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(shown, `"advice"`) {
		t.Error("a policy is advised for two file systems at once")
	}
	_, rows := table(t, onTwo(t, planted, 2))
	seen := map[string]int{}
	for _, row := range rows {
		seen[row["file_system"]]++
	}
	if seen["ext4"] != 27 || seen["xfs"] != 27 || len(seen) != 2 {
		t.Errorf("trials by file system: %v", seen)
	}
}

// TestUserModeLinuxIsNotSetBesideTheHost: its times tell nothing about the machine's.
func TestUserModeLinuxIsNotSetBesideTheHost(t *testing.T) {
	here, there := planted(t, 10), planted(t, 10)
	shown := text(t, joined(placed(here, result.FileSystem{Name: "ext4"}), placed(there, result.FileSystem{Name: "uml-jfs"}), placed(there, result.FileSystem{Name: "uml-ext4"})))
	if !strings.Contains(shown, "uml-ext4  against uml-jfs") || strings.Contains(shown, "against ext4") {
		t.Errorf("it is\n%s", shown)
	}
}
