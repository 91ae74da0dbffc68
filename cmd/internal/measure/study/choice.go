package study

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// A Preset is a size of run.
type Preset struct {
	Name   string
	Budget time.Duration // for everything, calibration included
	Rounds int
	Width  float64 // at which the run ends, see result.Plan; 0: the run ends after Rounds
	Words  bool    // it also ends where words are decided
	Full   bool    // the larger matrix
}

// The names of the presets in the results.
const (
	PresetQuick   = "quick"
	PresetDefault = "default"
	PresetFull    = "full"
	PresetAudit   = "audit"
)

// Quick is the shortest preset: just enough rounds to prove a factor of two among the usual policies, and enough paced trials to
// give the default run's advice. Longer presets begin with their planned rounds, or with fewer, down to ten, on a slow disk. They
// go on until every ratio is known to their width or the time is up.
func Quick() Preset { return Preset{Name: PresetQuick, Budget: 15 * time.Second, Rounds: 12} }

// Default is the preset of a run that names no preset. It ends as soon as each word of its answer is decided.
func Default() Preset {
	return Preset{Name: PresetDefault, Budget: 45 * time.Second, Rounds: 15, Width: 0.10, Words: true}
}

// Full is the preset with the larger matrix.
func Full() Preset {
	return Preset{Name: PresetFull, Budget: 5 * time.Minute, Rounds: 30, Full: true, Width: stat.Band}
}

// Audit is the small form of a study: enough rounds for a verdict on each claim.
func Audit() Preset { return Preset{Name: PresetAudit} }

// A Choice is the settings that the user may set; empty and zero fields mean the preset's.
type Choice struct {
	Preset   Preset
	Policies []holdfast.Policy
	Records  []holdfast.Size
	Writers  []int
	Buffers  []holdfast.Size // of a study's arms
	Count    int64           // of records in a study's arms
	DIY      string          // the path of a student's C file that is timed beside a study's arms
	Source   string          // the path of the file that is copied; empty: random bytes are
	Parts    []Part          // of a study that has parts; none: the preset's
	Only     []string        // the arms of a study to run, by name; nil is all
	Rounds   int             // exactly this number, whatever the width
	Width    float64         // of the ratios' intervals at which the run ends
	Budget   time.Duration
	Seed     uint64
	Counting trial.Counting // of system calls, in the warm-up
	Quantile float64        // the rarest quantile of the times of Writes that is judged, such as 0.99; 0 is none

	// FileSystems are the file systems that the run makes for itself, by name; nil is none. A setting
	// of arms holds for all of them.
	FileSystems []string

	// The reasons why no file can be made cold or warm where the study runs. Empty: it can, or that is
	// not known yet.
	NeverCold, NeverWarm string
	// NeverSync is the reason why no file can be synced there.
	NeverSync string

	// NeverReflink is the reason why no two files can share their bytes there.
	NeverReflink string

	// Slower is the time by which a system call takes longer where the study runs than the studies'
	// plans assume, as in a guest. 0: no longer, or not known yet. PlanSlower is the same for the place
	// where the arms got their sizes; 0 is Slower.
	Slower, PlanSlower time.Duration

	Setting
}

// OfStudy returns the choice with the preset's values for a study, whose arms have sizes of their own.
// The published experiments ran 20 rounds, and a quick run's rounds prove a factor of two.
func (c Choice) OfStudy() Choice {
	c.Preset = map[string]Preset{
		PresetQuick:   {Name: PresetQuick, Rounds: stat.LargeRounds, Budget: 40 * time.Second},
		PresetDefault: {Name: PresetDefault, Rounds: 10, Budget: 90 * time.Second},
		PresetFull:    {Name: PresetFull, Rounds: 20, Budget: 15 * time.Minute, Full: true},
		PresetAudit:   {Name: PresetAudit, Rounds: 10, Budget: 40 * time.Second},
	}[c.Preset.Name]
	return c
}

// SlowerInPlan is the time by which a system call takes longer in the plan of the arms' sizes.
func (c Choice) SlowerInPlan() time.Duration { return cmp.Or(c.PlanSlower, c.Slower) }

// A Setting is the way in which all cells of a run are measured. The zero Setting is a closed loop on
// new files, in trials of fixed length.
type Setting struct {
	Rate   float64      // records a second that are due, by all writers together
	Cache  result.Cache // required state of the file in the page cache
	Steady bool         // trials go on until the throughput is steady
	Room   int64        // in bytes: the largest file of a steady trial; 0 is DefaultRoom
}

// DefaultRoom is the largest number of bytes that a steady trial writes by default. On most machines it
// fills the memory for dirty pages, 20 % of the available memory (see vm.dirty_ratio), so that the
// disk's own speed shows.
const DefaultRoom = 16 << 30

// MaxRecord is the size of the largest record that fits into a trial.
const MaxRecord = 64 * holdfast.MiB

// TimeToTake is the time that was chosen, or the preset's.
func (c Choice) TimeToTake() time.Duration {
	if c.Budget > 0 {
		return c.Budget
	}
	return c.Preset.Budget
}

// RoundsToRun is the number of rounds that was chosen, or the preset's; a steady run has one.
func (c Choice) RoundsToRun() int {
	switch {
	case c.Rounds > 0:
		return c.Rounds
	case c.Steady:
		return 1
	}
	return c.Preset.Rounds
}

// WidthToReach is the width of the ratios' intervals at which the run ends. It is 0 if the number of rounds is fixed.
func (c Choice) WidthToReach() float64 {
	switch {
	case c.Rounds > 0 || c.Steady:
		return 0
	case c.Width > 0:
		return c.Width
	}
	return c.Preset.Width
}

// EndsByWords reports whether the run ends where words are decided, and its ratios are known less well. A width that was asked for
// is reached.
func (c Choice) EndsByWords() bool { return c.WidthToReach() > 0 && c.Width == 0 && c.Preset.Words }

// The settings that a study may take, by the names of their flags.
const (
	TakesCount   = "count"
	TakesRecord  = "record"
	TakesBuffer  = "buffer"
	TakesWriters = "writers"
	TakesPolicy  = "policy"
	TakesCache   = "cache"
	TakesPart    = "part"
)

// SetFileSystems is the setting that lists the file systems of a run that made some.
const SetFileSystems = "fs"

// setTime is the setting of the chosen time, which a plan may follow although its rounds are fixed.
const setTime = "time"

// setSlower is the setting of the time by which a system call took longer where the arms got their
// sizes.
const setSlower = "slower"

// Settings returns the chosen settings in the form of the results.
func (c Choice) Settings() map[string]string {
	all := map[string]string{
		TakesRecord: texts(c.Records), TakesBuffer: texts(c.Buffers), TakesWriters: texts(c.Writers), TakesPolicy: texts(c.Policies),
		TakesCache: string(c.Cache), TakesPart: texts(c.Parts), "diy": c.DIY, "source": c.Source, "only": strings.Join(c.Only, "\n"),
	}
	all[SetFileSystems] = strings.Join(c.FileSystems, between)
	if c.Budget > 0 {
		all[setTime] = c.Budget.String()
	}
	if slower := c.SlowerInPlan(); slower > 0 {
		all[setSlower] = slower.String()
	}
	if c.Count > 0 {
		all[TakesCount] = strconv.FormatInt(c.Count, 10)
	}
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

// between separates the values of a setting, because policies contain commas.
const between = "; "

func texts[T any](values []T) string {
	var list []string
	for _, v := range values {
		list = append(list, fmt.Sprint(v))
	}
	return strings.Join(list, between)
}

// Or returns the choice, or the preset's values if nothing was chosen; each value once.
func Or[T comparable](chosen, preset []T) []T {
	if len(chosen) == 0 {
		return preset
	}
	var once []T
	for _, v := range chosen {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	return once
}
