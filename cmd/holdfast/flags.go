package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// A flagValue is a pflag.Value made of a parser.
type flagValue struct {
	kind string // shown in the help
	set  func(text string) error
	text func() string
}

func (v flagValue) Set(text string) error { return v.set(text) }
func (v flagValue) Type() string          { return v.kind }
func (v flagValue) String() string        { return v.text() }

// many is a flag that may be given more than once.
func many[T any](kind string, values *[]T, parse func(string) (T, error)) flagValue {
	set := func(text string) error {
		v, err := parse(text)
		if err == nil {
			*values = append(*values, v)
		}
		return err
	}
	return flagValue{kind, set, func() string { return strings.Trim(fmt.Sprint(*values), "[]") }}
}

// list is a flag of several values with commas between them, which may be given more
// than once.
func list[T any](kind string, values *[]T, parse func(string) (T, error)) flagValue {
	f := many(kind, values, parse)
	one := f.set
	f.set = func(text string) error {
		for _, part := range strings.Split(text, ",") {
			if err := one(strings.TrimSpace(part)); err != nil {
				return err
			}
		}
		return nil
	}
	return f
}

// once is a flag of which the last counts.
func once[T any](kind string, value *T, parse func(string) (T, error)) flagValue {
	set := func(text string) error {
		v, err := parse(text)
		if err == nil {
			*value = v
		}
		return err
	}
	return flagValue{kind, set, func() string { return fmt.Sprint(*value) }}
}

// parseRecord reads the size of a record that a trial can write.
func parseRecord(text string) (holdfast.Size, error) {
	size, err := holdfast.ParseSize(text)
	if err != nil {
		return 0, err
	}
	if size < trial.MinRecord || size > study.MaxRecord {
		return 0, fmt.Errorf("a record of %v can't be measured; use %v to %v", size, holdfast.Size(trial.MinRecord), study.MaxRecord)
	}
	return size, nil
}

const (
	maxWriters = 4096
	maxRounds  = 10000
)

// parseNumber returns a parser of whole numbers from 1 to most.
func parseNumber(noun string, most int) func(string) (int, error) {
	return parseBetween(1, most, noun+" can't be measured")
}

// parseBetween returns a parser of whole numbers, which says of others what they
// can't be.
func parseBetween(least, most int, cannot string) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", text)
		}
		if n < least || n > most {
			return 0, fmt.Errorf("%d %s; use %d to %d", n, cannot, least, most)
		}
		return n, nil
	}
}

func parseSeed(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number from 0 to %d", text, uint64(math.MaxUint64))
	}
	return n, nil
}

// parseShare returns a parser of percentages: 5% or 0.05.
func parseShare(noun string) func(string) (float64, error) {
	return func(text string) (float64, error) {
		number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a share such as 5%% or 0.05", text)
		}
		if isPercent {
			x /= 100
		}
		if !(x >= minShare && x <= 1) {
			return 0, fmt.Errorf("a %s of %s can't be had; use 0.1%% to 100%%", noun, text)
		}
		return x, nil
	}
}

// minShare is less than can be told apart on any machine.
const minShare = 0.001

// The bounds of a rate: a record in ten seconds, and more than memory takes.
const minRate, maxRate = 0.1, 1e9

// parseRate reads records a second: 50k, 200, 1.5M.
func parseRate(text string) (float64, error) {
	number, factor := strings.TrimSuffix(text, "/s"), 1.0
	for suffix, f := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, factor = rest, f
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of records a second, such as 200, 50k or 1.5M", text)
	}
	if x *= factor; !(x >= minRate && x <= maxRate) {
		return 0, fmt.Errorf("%s records a second can't be measured; use 0.1 to 1000M", text)
	}
	return x, nil
}

func parseCache(text string) (result.Cache, error) {
	states := []result.Cache{result.NewFile, result.Warm, result.Cold, result.TryCold, result.Dropped, result.Remount}
	if slices.Contains(states, result.Cache(text)) {
		return result.Cache(text), nil
	}
	return "", fmt.Errorf("%q is no state of the page cache; use new, warm, cold, try-cold, drop or remount", text)
}
