package copying

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Claims that compare file systems are judged by a run on several: an audit is on one,
// and says which run would decide.
func copyClaimsAcross() []study.Claim {
	byte1 := copyCell{timing.Copy, wholeSize, 1}
	page := copyCell{timing.Copy, wholeSize, 4096}
	write1, writePage := copyCell{timing.Write, writeSize, 1}, copyCell{timing.Write, writeSize, 4096}
	return []study.Claim{
		{
			Name: "copy-jfs-small", Says: "jfs is the fastest with small buffers, btrfs the slowest", Published: "66 s, 114 s for 100 MB by single bytes",
			Decide: ordered(byte1, wholeElapsed, []string{"jfs"}, []string{"btrfs"}),
		},
		{
			Name: "copy-ext4-btrfs-system", Says: "ext4 and btrfs take less system time than the others with 4096 bytes", Published: "0.067 s, 0.065 s; the others 0.147 to 0.179 s",
			Decide: parted(ordered(page, func(t result.Trial) float64 { return float64(t.System) * stretch(t) }, []string{"ext4", "btrfs"}, nil)),
		},
		{
			Name: "copy-larger-all", Says: "as the buffer grows, performance improves for all file systems", Published: "512, 4096 and 65536 bytes on six",
			Decide: largerOnAll,
		},
		{
			Name: "copy-user-alike", Says: "user time has the least effect: by single bytes it is about the same on all file systems", Published: "9.1 s to 10.5 s",
			Decide: parted(alike(byte1)),
		},
		{
			Name: "copy-write-jfs-small", Says: "written without reading, jfs is the fastest with small buffers, btrfs the slowest", Published: "12.5 s, 28.2 s for 32 MB by single bytes",
			Decide: ordered(write1, wholeElapsed, []string{"jfs"}, []string{"btrfs"}),
		},
		{
			Name: "copy-write-ext4-4096", Says: "written without reading, ext4 wins with 4096 bytes", Published: "0.016 s",
			Decide: func(e study.Evidence) study.Finding { return contradictsItself(e, writePage) },
		},
	}
}

// sameKernel returns the file systems that can be compared with each other. They ran under the
// run's own kernel or under another kernel that it started: the larger group.
func sameKernel(all []study.Evidence) (same []study.Evidence) {
	other := slices.DeleteFunc(slices.Clone(all), func(e study.Evidence) bool { return !study.IsUserMode(e.FileSystem) })
	own := slices.DeleteFunc(slices.Clone(all), func(e study.Evidence) bool { return study.IsUserMode(e.FileSystem) })
	if len(other) > len(own) {
		return other
	}
	return own
}

// kindOf returns the kind of a file system, without its place and its options.
func kindOf(fileSystem string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(fileSystem, study.UserModeLinux), "-")
	return kind
}

// withCell returns the evidence of the kinds that have measured the cell, by kind.
func withCell(e study.Evidence, c copyCell) map[string]study.Evidence {
	of := map[string]study.Evidence{}
	for _, one := range sameKernel(study.EvidenceOn(e.Run.Run)) {
		if _, ok := of[kindOf(one.FileSystem)]; !ok && one.Have(c.name()) {
			of[kindOf(one.FileSystem)] = one
		}
	}
	return of
}

// notAcross says what would be needed to judge.
func notAcross(e study.Evidence, c copyCell, of map[string]study.Evidence, kinds ...string) (study.Finding, bool) {
	lacks := slices.ContainsFunc(kinds, func(kind string) bool { _, ok := of[kind]; return !ok })
	if !lacks && len(of) > len(kinds) {
		return study.Finding{}, false
	}
	part := study.PartC
	if c.form.Writes() {
		part = study.PartWrite
	}
	side := "several file systems"
	if len(kinds) > 0 {
		side = strings.Join(kinds, ", ") + " and others"
	}
	where := "this directory is on " + e.Fact("file system")
	if names := e.Run.FileSystems(); len(names) > 0 {
		where = "this run was on " + strings.Join(names, ", ")
	}
	return study.Finding{Verdict: study.NotChecked, Why: fmt.Sprintf("it takes %s side by side, as holdfast study copy --part %s --fs measures them, and %s", side, part, where)}, true
}

// parted judges only where CPU time is parted into user and system time.
func parted(judge func(study.Evidence) study.Finding) func(study.Evidence) study.Finding {
	return func(e study.Evidence) study.Finding {
		if same := sameKernel(study.EvidenceOn(e.Run.Run)); len(same) > 0 && study.IsUserMode(same[0].FileSystem) {
			return study.Finding{Verdict: study.NotChecked, Why: UserModeUnparted}
		}
		return judge(e)
	}
}

// largerOnAll judges the step up that gains the least, on any of the file systems.
func largerOnAll(e study.Evidence) study.Finding {
	steps := []copyCell{{timing.Copy, wholeSize, 512}, {timing.Copy, wholeSize, 4096}, {timing.Copy, wholeSize, 65536}}
	all := withCell(e, steps[0])
	if len(all) < 2 {
		f, _ := notAcross(e, steps[0], nil)
		return f
	}
	closest, where := study.Measured{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Text: study.Times}, ""
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		for i, c := range steps[1:] {
			if !all[kind].Have(c.name()) {
				return study.Finding{Verdict: study.NotChecked, Why: "no round of " + c.name() + " is whole on " + kind, Settle: "--full"}
			}
			if r := study.Ratio(all[kind].Ratio(steps[i].name(), c.name(), written)); math.IsNaN(closest.Value) || r.Value < closest.Value {
				closest, where = r, fmt.Sprintf("%d to %d bytes on %s", steps[i].buffer, c.buffer, kind)
			}
		}
	}
	f := closest.Judge(study.AtLeast(1), study.NotHere, "each step up gains on all of them, and this one gains the least", "this step up costs time")
	f.Measured += ", " + where
	return f
}

// ordered judges that the least are less than all the others, and the most are more.
func ordered(c copyCell, of study.Metric, least, most []string) func(study.Evidence) study.Finding {
	return func(e study.Evidence) study.Finding {
		all := withCell(e, c)
		if f, open := notAcross(e, c, all, slices.Concat(least, most)...); open {
			return f
		}
		closest := study.Measured{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Text: study.Times}
		pair := ""
		kinds := slices.Sorted(maps.Keys(all))
		for _, over := range kinds {
			for _, under := range kinds {
				// The claim is that under takes less than over.
				low, high := slices.Contains(least, under), slices.Contains(most, over)
				if !(low && !slices.Contains(least, over) || high && !slices.Contains(most, under)) {
					continue
				}
				// How many times as much one takes as the other, round by round.
				floor := max(all[over].Floor, all[under].Floor)
				ratio := stat.Compare(all[under].Samples(c.name(), of), all[over].Samples(c.name(), of), floor, stat.Band)
				if r := study.Ratio(ratio); math.IsNaN(closest.Value) || r.Value < closest.Value {
					closest, pair = r, over+" to "+under
				}
			}
		}
		ahead := study.AtLeast(math.Nextafter(1, 2)) // more than as much: no tie
		f := closest.Judge(ahead, study.NotHere, "so it is in every comparison, and "+pair+" is the closest", "not so of "+pair)
		f.Measured += ", " + pair
		return f
	}
}

// alike judges that the user time of the cell is about the same on all.
func alike(c copyCell) func(study.Evidence) study.Finding {
	return func(e study.Evidence) study.Finding {
		all := withCell(e, c)
		if f, open := notAcross(e, c, all, "xfs", "btrfs"); open {
			return f
		}
		low, high, known := math.Inf(1), 0.0, true
		for _, one := range all {
			w := wholeOf(one, c)
			low, high = min(low, w.user), max(high, w.user)
			known = known && !math.IsNaN(w.cpu.Low)
		}
		const alikeMost = 1.25 // the most that is called about the same; published it is 1.15
		f := study.Finding{Measured: fmt.Sprintf("%s to %s", study.Duration(low), study.Duration(high)), Verdict: study.NotHere, Why: fmt.Sprintf("the most is %s the least", study.Times(high/low))}
		switch {
		case math.IsNaN(high / low):
			f.Verdict, f.Why = study.NotChecked, "no CPU time is known"
		case !known:
			f.Verdict, f.Why, f.Settle = study.NotChecked, "too few rounds for an interval", "--full"
		case high/low <= alikeMost:
			f.Verdict = study.Holds
		}
		return f
	}
}

// contradictsItself judges a claim that ext4 wins by the document's own table, and
// says what a run shows besides.
func contradictsItself(e study.Evidence, c copyCell) study.Finding {
	f := study.Finding{Verdict: study.NeverSo, Why: "its own table has jfs at 0.0147 s, ext2 at 0.0153 s and ext4 at 0.016 s"}
	all := withCell(e, c)
	if len(all) < 2 {
		return f
	}
	var names []string
	for _, r := range ranking(slices.Collect(maps.Values(all)), c) {
		names = append(names, r.name+" "+study.Duration(r.elapsed.Median))
	}
	f.Measured = strings.Join(names, ", ")
	return f
}
