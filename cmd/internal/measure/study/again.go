package study

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// Again returns the matrix that a header of the study describes. It looks up the header's cells among
// the arms.
func (s Study) Again(h result.Header, counting trial.Counting) (trial.Matrix, error) {
	m := trial.Matrix{Rounds: h.Plan.Rounds, Seed: h.Seed, Limit: h.Plan.Limit}
	c, err := choiceOf(h)
	if err != nil {
		return m, err
	}
	c.Counting = counting
	now, _, missing := s.Matrix(c)
	for _, want := range h.Cells {
		i := slices.IndexFunc(now.Cells, func(c trial.Cell) bool { return c.Cell == want })
		if i < 0 {
			why := ""
			if at := slices.IndexFunc(missing, func(m result.Missing) bool { return m.Cell == want.Name }); at >= 0 {
				why = ": " + missing[at].Why
			}
			return m, fmt.Errorf("this build of the study %s has no arm %s%s", s.Name, want.Name, why)
		}
		m.Cells = append(m.Cells, now.Cells[i])
	}
	return m, nil
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
	c.Cache, c.DIY, c.Source = result.Cache(h.Settings[TakesCache]), h.Settings["diy"], h.Settings["source"]
	c.FileSystems = parts(SetFileSystems)
	for name, of := range map[string]*time.Duration{setTime: &c.Budget, setSlower: &c.PlanSlower} {
		if text := h.Settings[name]; text != "" {
			if *of, err = time.ParseDuration(text); err != nil {
				return c, fmt.Errorf("the results have %s %q: %w", name, text, err)
			}
		}
	}
	c = c.Share(len(c.FileSystems))
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
