package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
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
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", text)
		}
		if n < 1 || n > most {
			return 0, fmt.Errorf("%d %s can't be measured; use 1 to %d", n, noun, most)
		}
		return n, nil
	}
}

func parseSeed(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number from 0 up", text)
	}
	return n, nil
}
