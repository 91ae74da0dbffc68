package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/stat"
)

// Floor is what ours and its twin differ by, or NaN.
func Floor[S any](ours, twin *Runs[S], cost func(S) float64) float64 {
	if ours.Err != nil || twin.Err != nil {
		return stat.Floor(nil, nil)
	}
	return stat.Floor(ours.Each(cost), twin.Each(cost))
}

// Compared sets an arm against ours: the columns are the ratio of their costs with so many
// decimals, its interval and the verdict. They are empty for ours itself.
func Compared[S any](ours, arm *Runs[S], cost func(S) float64, floor float64, decimals int) []string {
	if arm == ours || ours.Err != nil {
		return []string{"", "", ""}
	}
	c := stat.Compare(ours.Each(cost), arm.Each(cost), floor, stat.Band)
	ratio, interval := fmt.Sprintf("%.*f", decimals, c.Ratio), ""
	if c.HasInterval() {
		interval = fmt.Sprintf("%.*f–%.*f", decimals, c.Low, decimals, c.High)
	}
	return []string{ratio, interval, string(c.Verdict)}
}

// Spread prints the interval of a summary, if it has one, with the verb for its ends.
func Spread(s stat.Summary, verb string) string {
	if !s.HasInterval() {
		return ""
	}
	return fmt.Sprintf(verb+"–"+verb, s.Low, s.High)
}

// NotCounted is the row of an arm that failed, of so many columns after its name.
func NotCounted(err error, columns int) []string {
	row := make([]string, columns)
	row[0] = "does not count: " + InCell(err.Error())
	return row
}

// longestCell is how many bytes of a text stand in a cell.
const longestCell = 160

// InCell makes a text fit for a table's cell.
func InCell(text string) string {
	return strings.NewReplacer("|", "/", "\n", " ").Replace(text[:min(len(text), longestCell)])
}

// Verdicts says what the words of the verdicts mean, and the race's noise floor.
func Verdicts(race string) string {
	return fmt.Sprintf("*slower*, *faster* and *same* (within %.0f %%) are proven over at least %d rounds, beyond the noise floor of the %s", stat.Band*100, stat.VerdictRounds, race)
}

// MoreRounds goes on after [Verdicts].
const MoreRounds = "; *not proven* with a wide interval asks for more rounds or a quieter machine."

// Percent prints a share, which may be NaN.
func Percent(x float64) string {
	if x != x {
		return "not known"
	}
	return fmt.Sprintf("%.1f %%", x*100)
}

// Rounded says how many rounds there were, of all that were asked for.
func (r Rounds) Rounded(complete int) string {
	text := fmt.Sprintf("%d rounds in random order (`-seed %d`)", complete, r.Seed)
	return text + r.Interrupted(complete)
}

// Interrupted says how many rounds are missing, or nothing.
func (r Rounds) Interrupted(complete int) string {
	if complete < r.Count {
		return fmt.Sprintf(", interrupted before %d more", r.Count-complete)
	}
	return ""
}

// Platform names the system, Go's version and how many processors it uses.
func Platform() string {
	return fmt.Sprintf("%s/%s, %s, GOMAXPROCS %d", runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.GOMAXPROCS(0))
}

// Versions names the modules among these that this program is built with.
func Versions(modules ...string) (list []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return []string{"not known"}
	}
	for _, m := range info.Deps {
		if slices.Contains(modules, m.Path) {
			list = append(list, m.Path+" "+m.Version)
		}
	}
	return list
}
