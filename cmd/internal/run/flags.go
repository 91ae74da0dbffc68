package run

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

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
	return cli.ParseBetween(1, most, noun+" can't be measured")
}

// The bounds of a rate: a record in ten seconds, and more than memory takes.
const minRate, maxRate = 0.1, 1e9

// CacheStates are those that a run can begin with.
var CacheStates = []result.Cache{result.NewFile, result.Warm, result.Cold, result.TryCold, result.Dropped, result.Remount}
