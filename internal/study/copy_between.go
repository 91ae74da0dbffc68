package study

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
	"github.com/holdfast-go/holdfast/internal/timing"
)

// Claims that compare file systems are judged by a run on several: an audit is on one,
// and says which run would tell.
func copyClaimsAcross() []Claim {
	byte1 := copyCell{timing.Copy, wholeSize, 1}
	page := copyCell{timing.Copy, wholeSize, 4096}
	write1, writePage := copyCell{timing.Write, writeSize, 1}, copyCell{timing.Write, writeSize, 4096}
	return []Claim{
		{
			Name: "copy-jfs-small", Source: copyBufferSizes, Says: "jfs is the fastest with small buffers, btrfs the slowest", Published: "66 s, 114 s for 100 MB by single bytes",
			Judge: ordered(byte1, wholeElapsed, []string{"jfs"}, []string{"btrfs"}),
		},
		{
			Name: "copy-ext4-btrfs-system", Source: copyBufferSizes, Says: "ext4 and btrfs take less system time than the others with 4096 bytes", Published: "0.067 s, 0.065 s; the others 0.147 to 0.179 s",
			Judge: ordered(page, wholeSystem, []string{"ext4", "btrfs"}, nil),
		},
		{
			Name: "copy-user-alike", Source: copyBufferSizes, Says: "user time has the least effect: by single bytes it is about the same on all file systems", Published: "9.1 s to 10.5 s",
			Judge: alike(byte1),
		},
		{
			Name: "copy-write-jfs-small", Source: copyBufferSizes, Says: "written without reading, jfs is the fastest with small buffers, btrfs the slowest", Published: "12.5 s, 28.2 s for 32 MB by single bytes",
			Judge: ordered(write1, wholeElapsed, []string{"jfs"}, []string{"btrfs"}),
		},
		{
			Name: "copy-write-ext4-4096", Source: copyBufferSizes, Says: "written without reading, ext4 wins with 4096 bytes", Published: "0.016 s",
			Judge: func(e Evidence) Finding { return contradictsItself(e, writePage) },
		},
	}
}

// wholeSystem is the system CPU time of the whole.
func wholeSystem(t result.Trial) float64 { return float64(t.System) * stretch(t) }

// sameKernel returns the file systems that can be held against each other: those that
// the run made under its own kernel, or those of another that it ran, whichever are
// more.
func sameKernel(all []Evidence) (same []Evidence) {
	other := slices.DeleteFunc(slices.Clone(all), func(e Evidence) bool { return !isUserMode(e.FileSystem) })
	own := slices.DeleteFunc(slices.Clone(all), func(e Evidence) bool { return isUserMode(e.FileSystem) })
	if len(other) > len(own) {
		return other
	}
	return own
}

// kindOf is what a file system is, without where it is and with which options.
func kindOf(fileSystem string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(fileSystem, userModeLinux), "-")
	return kind
}

// withCell returns the evidence of the kinds that have measured the cell, by kind.
func withCell(e Evidence, c copyCell) map[string]Evidence {
	of := map[string]Evidence{}
	for _, one := range sameKernel(EvidenceOn(e.run)) {
		if _, ok := of[kindOf(one.FileSystem)]; !ok && one.have(c.name()) {
			of[kindOf(one.FileSystem)] = one
		}
	}
	return of
}

// notAcross says what would be needed to judge.
func notAcross(e Evidence, c copyCell, of map[string]Evidence, kinds ...string) (Finding, bool) {
	lacks := slices.ContainsFunc(kinds, func(kind string) bool { _, ok := of[kind]; return !ok })
	if !lacks && len(of) > len(kinds) {
		return Finding{}, false
	}
	part := PartC
	if c.form.Writes() {
		part = PartWrite
	}
	side := "several file systems"
	if len(kinds) > 0 {
		side = strings.Join(kinds, ", ") + " and others"
	}
	where := "this folder is on " + e.Fact("file system")
	if names := e.run.FileSystems(); len(names) > 0 {
		where = "this run was on " + strings.Join(names, ", ")
	}
	return Finding{Verdict: NotChecked, Why: fmt.Sprintf("it takes %s side by side, as holdfast bench copy --part %s --fs measures them, and %s", side, part, where)}, true
}

// ordered judges that the least are less than all the others, and the most are more.
func ordered(c copyCell, of Metric, least, most []string) func(Evidence) Finding {
	return func(e Evidence) Finding {
		all := withCell(e, c)
		if f, open := notAcross(e, c, all, slices.Concat(least, most)...); open {
			return f
		}
		closest := measured{value: math.NaN(), low: math.NaN(), high: math.NaN(), text: times}
		pair := ""
		kinds := slices.Sorted(maps.Keys(all))
		for _, over := range kinds {
			for _, under := range kinds {
				if !before(under, over, least, most) {
					continue
				}
				if r := ratio(acrossRatio(all[over], all[under], c, of)); math.IsNaN(closest.value) || r.value < closest.value {
					closest, pair = r, over+" to "+under
				}
			}
		}
		f := closest.judge(ahead, NotHere, "so it is in every comparison, of which "+pair+" is the closest", "not so of "+pair)
		f.Measured += ", " + pair
		return f
	}
}

// ahead is more than as much: no tie.
var ahead = atLeast(math.Nextafter(1, 2))

// before reports whether the claim says that one takes less than the other.
func before(under, over string, least, most []string) bool {
	low, high := slices.Contains(least, under), slices.Contains(most, over)
	return low && !slices.Contains(least, over) || high && !slices.Contains(most, under)
}

// acrossRatio is how many times as much one file system takes as another, round by
// round.
func acrossRatio(over, under Evidence, c copyCell, of Metric) stat.Comparison {
	floor := max(over.floor, under.floor)
	return stat.Compare(under.samples(c.name(), of), over.samples(c.name(), of), floor, stat.Band)
}

// alikeMost is the most that the file systems' user times may differ to be about the
// same: published it is 1.15 times.
const alikeMost = 1.25

// alike judges that the user time of the cell is about the same on all.
func alike(c copyCell) func(Evidence) Finding {
	return func(e Evidence) Finding {
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
		f := Finding{Measured: fmt.Sprintf("%s to %s", duration(low), duration(high)), Verdict: NotHere, Why: fmt.Sprintf("the most is %s the least", times(high/low))}
		switch {
		case math.IsNaN(high / low):
			f.Verdict, f.Why = NotChecked, "no CPU time was told"
		case !known:
			f.Verdict, f.Why, f.Settle = NotChecked, "too few rounds for an interval", "--full"
		case high/low <= alikeMost:
			f.Verdict = Holds
		}
		return f
	}
}

// contradictsItself judges a claim that ext4 wins by the document's own table, and
// tells what a run shows besides.
func contradictsItself(e Evidence, c copyCell) Finding {
	f := Finding{Verdict: NeverSo, Why: "by its own table jfs takes 0.0147 s and ext2 0.0153 s, and ext4 0.016 s"}
	all := withCell(e, c)
	if len(all) < 2 {
		return f
	}
	var names []string
	for _, r := range ranking(slices.Collect(maps.Values(all)), c) {
		names = append(names, r.name+" "+duration(r.elapsed.Median))
	}
	f.Measured = strings.Join(names, ", ")
	return f
}
