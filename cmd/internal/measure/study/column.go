package study

import "github.com/holdfast-go/holdfast/cmd/internal/measure/result"

// A Column is a column of a table that has a row for each R, such as an arm.
type Column[R any] struct {
	Head string
	Cell func(R) string
}

// An ArmColumn is a column of a table that has a row for each arm.
type ArmColumn = Column[result.Cell]

// Tabulate returns the table with these columns, and a row for each of rows.
func Tabulate[R any](t Table, rows []R, columns []Column[R]) Table {
	for _, c := range columns {
		t.Head = append(t.Head, c.Head)
	}
	for _, r := range rows {
		var row []string
		for _, c := range columns {
			row = append(row, c.Cell(r))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Cells returns the arms with these names that were run.
func (e Evidence) Cells(arms ...string) (cells []result.Cell) {
	for _, arm := range arms {
		if c, ok := e.Cell(arm); ok {
			cells = append(cells, c)
		}
	}
	return cells
}

// MedianOf is the column of a figure's medians.
func (e Evidence) MedianOf(head string, of Metric, text func(float64) string) ArmColumn {
	return ArmColumn{head, func(c result.Cell) string { return text(e.Median(c.Name, of)) }}
}

// IntervalOf is MedianOf with the medians' intervals.
func (e Evidence) IntervalOf(head string, of Metric, text func(float64) string) ArmColumn {
	return ArmColumn{head, func(c result.Cell) string { return Median(e.Summary(c.Name, of), text) }}
}

// WorstOf is the column of each arm's largest value of that name in any round.
func (e Evidence) WorstOf(head, value string, text func(float64) string) ArmColumn {
	return ArmColumn{head, func(c result.Cell) string { return text(Worst(e.Trials(c.Name), value)) }}
}

// Against is the column of each arm's time relative to another arm's, or a dash if base names none or
// the arm itself.
func (e Evidence) Against(head string, base func(result.Cell) string) ArmColumn {
	return ArmColumn{head, func(c result.Cell) string {
		if b := base(c); b != "" && b != c.Name {
			return Compared(e.Ratio(c.Name, b, PerRecord))
		}
		return Dash
	}}
}

// Gain is the column of each arm's speed relative to another arm's, or a dash if base names none or the
// arm itself.
func (e Evidence) Gain(head string, base func(result.Cell) string) ArmColumn {
	return ArmColumn{head, func(c result.Cell) string {
		if b := base(c); b != "" && b != c.Name {
			return Ratio(e.Ratio(b, c.Name, PerRecord)).OrDash()
		}
		return Dash
	}}
}

// ToArm is the base of a column in which all arms are compared with one.
func ToArm(name string) func(result.Cell) string { return func(result.Cell) string { return name } }

// Records is the column of the number of records in a trial of each arm.
func Records(head string) ArmColumn {
	return ArmColumn{head, func(c result.Cell) string { return Whole(float64(c.Records)) }}
}
