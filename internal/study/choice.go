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
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/stat"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// A Preset is a size of run.
type Preset struct {
	Name   string
	Budget time.Duration // for all, calibration included
	Rounds int
	Width  float64 // at which the run ends, see result.Plan; 0 runs just the rounds
	Full   bool    // the larger matrix
}

// The names of the presets, as they stand in the results.
const (
	quick    = "quick"
	standard = "default"
	full     = "full"
	small    = "audit"
)

// The presets. Ten rounds are the least from which a difference can be called
// proven; quick gives that up. The others begin with the rounds that they say, or
// with fewer, down to ten, on a slow disk, and go on until every ratio is known to
// the width of [stat.Band] or the time is up.
func Quick() Preset { return Preset{Name: quick, Budget: 10 * time.Second, Rounds: 3} }
func Default() Preset {
	return Preset{Name: standard, Budget: 45 * time.Second, Rounds: 20, Width: stat.Band}
}
func Full() Preset {
	return Preset{Name: full, Budget: 5 * time.Minute, Rounds: 30, Full: true, Width: stat.Band}
}

// Audit is the small form of a study: enough rounds for a verdict of each claim.
func Audit() Preset { return Preset{Name: small} }

// The presets of studies, whose arms have a size of their own: 20 rounds are what
// the published experiments ran.
var ofStudies = map[string]Preset{
	quick:    {Name: quick, Rounds: 3, Budget: 20 * time.Second},
	standard: {Name: standard, Rounds: 10, Budget: 90 * time.Second},
	full:     {Name: full, Rounds: 20, Budget: 15 * time.Minute, Full: true},
	small:    {Name: small, Rounds: 10, Budget: 40 * time.Second},
}

// ofStudy returns the choice with what its preset means for a study.
func (c Choice) ofStudy() Choice {
	c.Preset = ofStudies[c.Preset.Name]
	return c
}

// A Choice is what the user may set; what is empty or zero is the preset's.
type Choice struct {
	Preset   Preset
	Policies []holdfast.Policy
	Records  []holdfast.Size
	Writers  []int
	Buffers  []holdfast.Size // of a study's arms
	Count    int64           // of records in a study's arms
	Parts    []Part          // of a study that has parts; none are the preset's
	Only     []string        // the arms of a study that are run, by name; nil is all
	Rounds   int             // just so many, whatever the width
	Width    float64         // of the ratios' intervals at which the run ends
	Budget   time.Duration
	Seed     uint64
	Counting trial.Counting // of system calls, in the warm-up

	// FileSystems are those that the run makes for itself, by name; nil is none. Each
	// arm is asked for once for all of them.
	FileSystems []string

	// Why no file can be made cold or warm where the study runs. Empty: it can, or
	// that is not known yet.
	NeverCold, NeverWarm string
	// NeverSync says likewise why no file can be synced.
	NeverSync string

	// NeverReflink says likewise why no two files can share their bytes there.
	NeverReflink string

	// Slower is how much longer a system call takes where the study runs than the plans
	// of studies have it, as in a guest; 0 is not at all, or not known yet. PlanSlower
	// is the same of where the arms got their sizes; 0 is Slower.
	Slower, PlanSlower time.Duration

	Setting
}

// planSlower is by how much longer a system call takes in the plan for the sizes of the arms.
func (c Choice) planSlower() time.Duration { return cmp.Or(c.PlanSlower, c.Slower) }

// on returns the choice with what can't be had on g.
func (c Choice) on(g *trial.Ground) Choice {
	why := func(asked result.Cache) string {
		if err := g.Can(asked); err != nil {
			return err.Error()
		}
		return ""
	}
	c.NeverCold, c.NeverWarm = why(result.Cold), why(result.Warm)
	c.NeverReflink = noReflink(g)
	if err := g.CanSync(); err != nil {
		c.NeverSync = err.Error()
	}
	return c
}

func (c Choice) budget() time.Duration {
	if c.Budget > 0 {
		return c.Budget
	}
	return c.Preset.Budget
}

func (c Choice) rounds() int {
	switch {
	case c.Rounds > 0:
		return c.Rounds
	case c.Steady:
		return 1
	}
	return c.Preset.Rounds
}

// width is 0 where the number of rounds is fixed.
func (c Choice) width() float64 {
	switch {
	case c.Rounds > 0 || c.Steady:
		return 0
	case c.Width > 0:
		return c.Width
	}
	return c.Preset.Width
}

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

// setTime is the setting of the time that was chosen, which a plan may follow though
// its rounds are fixed.
const setTime = "time"

// setSlower is the setting of how much longer a system call took where the arms got
// their sizes.
const setSlower = "slower"

// Settings returns what was chosen, as the results keep it.
func (c Choice) Settings() map[string]string {
	all := map[string]string{
		TakesRecord: texts(c.Records), TakesBuffer: texts(c.Buffers), TakesWriters: texts(c.Writers), TakesPolicy: texts(c.Policies),
		TakesCache: string(c.Cache), TakesPart: texts(c.Parts), "only": strings.Join(c.Only, "\n"),
	}
	all[SetFileSystems] = strings.Join(c.FileSystems, between)
	if c.Budget > 0 {
		all[setTime] = c.Budget.String()
	}
	if slower := c.planSlower(); slower > 0 {
		all[setSlower] = slower.String()
	}
	if c.Count > 0 {
		all[TakesCount] = strconv.FormatInt(c.Count, 10)
	}
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

// between parts the values of a setting; policies have commas of their own.
const between = "; "

func texts[T any](values []T) string {
	var list []string
	for _, v := range values {
		list = append(list, fmt.Sprint(v))
	}
	return strings.Join(list, between)
}

// choiceOf reads the settings of a run again.
func choiceOf(h result.Header) (c Choice, err error) {
	c = Choice{Preset: Preset{Name: h.Plan.Preset}, Seed: h.Seed, Budget: h.Plan.Limit}
	if h.Plan.Limit == 0 {
		c.Rounds = h.Plan.Rounds
	}
	parts := func(name string) []string {
		if h.Settings[name] == "" {
			return nil
		}
		return strings.Split(h.Settings[name], between)
	}
	if text := h.Settings["only"]; text != "" {
		c.Only = strings.Split(text, "\n")
	}
	c.Cache = result.Cache(h.Settings[TakesCache])
	c.FileSystems = parts(SetFileSystems)
	for name, of := range map[string]*time.Duration{setTime: &c.Budget, setSlower: &c.PlanSlower} {
		if text := h.Settings[name]; text != "" {
			if *of, err = time.ParseDuration(text); err != nil {
				return c, fmt.Errorf("the results have %s %q: %w", name, text, err)
			}
		}
	}
	c = c.share(len(c.FileSystems))
	if c.Parts, err = parsed(parts(TakesPart), ParsePart); err != nil {
		return c, err
	}
	for _, text := range parts(TakesCount) {
		if c.Count, err = strconv.ParseInt(text, 10, 64); err != nil {
			return c, fmt.Errorf("the results have count %q: %w", text, err)
		}
	}
	if c.Records, err = parsed(parts(TakesRecord), holdfast.ParseSize); err != nil {
		return c, err
	}
	if c.Buffers, err = parsed(parts(TakesBuffer), holdfast.ParseSize); err != nil {
		return c, err
	}
	if c.Writers, err = parsed(parts(TakesWriters), strconv.Atoi); err != nil {
		return c, err
	}
	c.Policies, err = parsed(parts(TakesPolicy), holdfast.ParsePolicy)
	return c, err
}

func parsed[T any](parts []string, parse func(string) (T, error)) (values []T, err error) {
	for _, text := range parts {
		v, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("the results have a setting %q: %w", text, err)
		}
		values = append(values, v)
	}
	return values, nil
}

// or returns the choice, or the preset's where nothing was chosen; each value once.
func or[T comparable](chosen, preset []T) []T {
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
