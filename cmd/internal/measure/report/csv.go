package report

import (
	"encoding"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A csvColumn is one key of the results: its path, joined by underscores, and the indices of its value.
type csvColumn struct {
	name      string
	fields    []int // indices of fields, from the outermost struct
	omitEmpty bool  // an empty value is left out of the results
}

// notTidy are the keys whose values are not single figures.
const notTidy = " samples hdr_histogram values turns_ns "

// cellNames are keys that a cell and a trial share. In a row the cell's key gets another name, or is
// left out.
func cellNames() map[string]string {
	return map[string]string{"name": "", "records": "records_planned", "steady": "steady_asked"}
}

// columnsOf returns the columns of a struct of the results, nested structs included.
func columnsOf(t reflect.Type, prefix string) []csvColumn {
	var columns []csvColumn
	for i := range t.NumField() {
		field := t.Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case !field.IsExported():
		case strings.Contains(notTidy, " "+key+" ") && key != "" || key == "-":
		case inner.Kind() == reflect.Struct && !inner.Implements(reflect.TypeFor[encoding.TextMarshaler]()): // else it is one text
			below := prefix
			if !field.Anonymous {
				below += key + "_"
			}
			for _, c := range columnsOf(inner, below) {
				c.fields = append([]int{i}, c.fields...)
				columns = append(columns, c)
			}
		default:
			columns = append(columns, csvColumn{prefix + key, []int{i}, options == "omitempty"})
		}
	}
	return columns
}

// appendText appends the column's value in v. A value that the results leave out is an empty cell.
func (c csvColumn) appendText(to []byte, v reflect.Value) []byte {
	for _, i := range c.fields {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return to
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return to
		}
		v = v.Elem()
	} else if c.omitEmpty && v.IsZero() {
		return to
	}
	switch {
	case v.CanInt():
		return strconv.AppendInt(to, v.Int(), 10)
	case v.CanFloat():
		return strconv.AppendFloat(to, v.Float(), 'g', -1, 64)
	}
	return fmt.Append(to, v.Interface())
}

// runColumns are columns of the run, and whether the trial's round is complete. Only trials of complete
// rounds are in figures.
var runColumns = []string{"started_at", "study", "seed", "whole_round"}

// A tidyTable has the columns of a cell and of a trial, and the values that only a study's arms report.
type tidyTable struct {
	cell, trial []csvColumn
	values      []string
}

func (t tidyTable) head() []string {
	head := append([]string{}, runColumns...)
	for _, c := range append(append([]csvColumn{}, t.cell...), t.trial...) {
		head = append(head, c.name)
	}
	for _, name := range t.values {
		head = append(head, "value_"+name)
	}
	return head
}

// valueNames returns the names of all values that the trials report.
func valueNames(trials ...*result.Trial) []string {
	names := map[string]bool{}
	for _, t := range trials {
		for name := range t.Values {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// writeCSV writes a row for each trial, in the order in which they were run.
func writeCSV(w io.Writer, run result.Run) error {
	table, out := tidyTable{trial: columnsOf(reflect.TypeFor[result.Trial](), ""), values: valueNames(run.Trials...)}, csv.NewWriter(w)
	for _, c := range columnsOf(reflect.TypeFor[result.Cell](), "") {
		if name, ok := cellNames()[c.name]; ok {
			c.name = name
		}
		if c.name != "" {
			table.cell = append(table.cell, c)
		}
	}
	if err := out.Write(table.head()); err != nil {
		return err
	}
	begins, whole := map[string][]string{}, map[int]bool{} // the row of each cell, without the trial's columns
	x, h := run.Indexed(), run.Header
	for _, c := range h.Cells {
		row := []string{h.StartedAt.Format(time.RFC3339), h.Study, fmt.Sprint(h.Seed), ""}
		for _, column := range table.cell {
			row = append(row, string(column.appendText(nil, reflect.ValueOf(c))))
		}
		begins[c.Name] = row
		for _, t := range x.Rounded(c.Name) {
			whole[t.Round] = true
		}
	}
	var row []string
	var texts []byte
	for _, t := range run.Trials {
		row = append(row[:0], begins[t.Cell]...)
		row[len(runColumns)-1] = fmt.Sprint(whole[t.Round])
		row, texts = table.rest(row, texts[:0], t)
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// rest appends the trial's columns to a row. It returns the buffer of the texts too, for the next row. If
// each field had a text of its own, the collector would take 40 % of the CPU time for a million trials.
func (t tidyTable) rest(row []string, texts []byte, trial *result.Trial) (all []string, room []byte) {
	v := reflect.ValueOf(trial).Elem()
	ends := make([]int, 0, 128)
	for _, column := range t.trial {
		texts = column.appendText(texts, v)
		ends = append(ends, len(texts))
	}
	for _, name := range t.values {
		if v, ok := trial.Values[name]; ok {
			texts = strconv.AppendFloat(texts, v, 'g', -1, 64)
		}
		ends = append(ends, len(texts))
	}
	text, begin := string(texts), 0
	for _, end := range ends {
		row = append(row, text[begin:end])
		begin = end
	}
	return row, texts
}
