package figure

import "github.com/holdfast-go/holdfast/cmd/internal/measure/result"

// Moves are a Writer's own counts of the bytes and writes of a trial: the medians of a cell's trials.
type Moves struct {
	Records Number
	Size    Number // bytes
	Flushes Number // writes to the file
	Syncs   Number
}

// Moves returns the Moves of a cell.
func (f Figures) Moves(c result.Cell) Moves {
	trials := f.Rounded(c.Name)
	count := func(of func(*result.Trial) int64) Number {
		return median(trials, func(t *result.Trial) float64 { return float64(of(t)) })
	}
	return Moves{
		Records: count(func(t *result.Trial) int64 { return t.Records }),
		Size:    count(func(t *result.Trial) int64 { return t.Size }),
		Flushes: count(func(t *result.Trial) int64 { return t.Writer.Flushes }),
		Syncs:   count(func(t *result.Trial) int64 { return t.Writer.Syncs }),
	}
}
