package report

import (
	"encoding"
	"fmt"
	"io"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/lab/result"
)

// A csvColumn is one key of the results: its path, joined by underscores, and how to
// reach its value.
type csvColumn struct {
	name      string
	fields    []int // indices of fields, from the outermost struct
	omitEmpty bool  // an empty value is left out of the results
}

// notTidy are keys with values that are no single figure.
const notTidy = " samples hdr_histogram values turns_ns "

// cellNames are the keys of a cell that a trial has too. In a row they have another name,
// or are left out.
var cellNames = map[string]string{"name": "", "records": "records_planned", "steady": "steady_asked"}

// columnsOf returns the columns of a struct of the results, with those of the
// structs in it.
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
		case inner.Kind() == reflect.Struct && !inner.Implements(textMarshaler): // else it is one text
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

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

// append appends the column's value in v; what the results leave out is empty.
func (c csvColumn) append(to []byte, v reflect.Value) []byte {
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
	return appendCSV(to, fmt.Sprint(v.Interface()))
}

// appendCSV appends texts as fields (RFC 4180), with a comma in between.
func appendCSV(to []byte, texts ...string) []byte {
	for i, text := range texts {
		if i > 0 {
			to = append(to, ',')
		}
		if strings.ContainsAny(text, ",\"\r\n") || strings.HasPrefix(text, " ") || text == `\.` { // as encoding/csv has it
			text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		}
		to = append(to, text...)
	}
	return to
}

// runColumns are the run's own, and whether the trial is of a whole round. Only
// trials of whole rounds are in figures.
var runColumns = []string{"started_at", "study", "seed", "whole_round"}

// A tidyTable has the columns of a cell, those of a trial, and those of the values that
// only a study's arms report.
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
	trials := make([]*result.Trial, len(run.Trials))
	for i := range trials {
		trials[i] = &run.Trials[i]
	}
	table := tidyTable{trial: columnsOf(reflect.TypeFor[result.Trial](), ""), values: valueNames(trials...)}
	for _, c := range columnsOf(reflect.TypeFor[result.Cell](), "") {
		if name, ok := cellNames[c.name]; ok {
			c.name = name
		}
		if c.name != "" {
			table.cell = append(table.cell, c)
		}
	}
	if _, err := w.Write(append(appendCSV(nil, table.head()...), '\n')); err != nil {
		return err
	}
	begins, whole := map[string][]byte{}, map[int]bool{} // the row of a cell, but for the trial's
	x, h := run.Indexed(), run.Header
	first := appendCSV(nil, h.StartedAt.Format(time.RFC3339), h.Study, fmt.Sprint(h.Seed))
	for _, c := range h.Cells {
		var row []byte
		for _, column := range table.cell {
			row = column.append(append(row, ','), reflect.ValueOf(c))
		}
		begins[c.Name] = row
		for _, t := range x.Rounded(c.Name) {
			whole[t.Round] = true
		}
	}
	// All CPUs write rows, some for each.
	const rows = 512
	parts := make([][]byte, runtime.GOMAXPROCS(0))
	for len(trials) > 0 {
		var all sync.WaitGroup
		for i := range parts {
			some := trials[:min(rows, len(trials))]
			trials = trials[len(some):]
			all.Go(func() {
				b := parts[i][:0]
				for _, t := range some {
					b = strconv.AppendBool(append(append(b, first...), ','), whole[t.Round])
					b = append(table.rest(append(b, begins[t.Cell]...), t), '\n')
				}
				parts[i] = b
			})
		}
		all.Wait()
		for _, b := range parts {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// rest appends what is the trial's to a row.
func (t tidyTable) rest(row []byte, trial *result.Trial) []byte {
	v := reflect.ValueOf(trial).Elem()
	for _, column := range t.trial {
		row = column.append(append(row, ','), v)
	}
	for _, name := range t.values {
		row = append(row, ',')
		if v, ok := trial.Values[name]; ok {
			row = strconv.AppendFloat(row, v, 'g', -1, 64)
		}
	}
	return row
}
