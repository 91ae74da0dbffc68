package report

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast/internal/lab/advise"
	"github.com/holdfast-go/holdfast/internal/lab/figure"
)

// A form is where a table of figures is shown.
type form uint8

const (
	inText form = 1 << iota
	inPage
	inMarkdown
	inAll form = 0 // of a column that names no form
)

// A column is one of a table with a row for each policy. It is in every form, unless it names
// forms: a page has room for more of them than a terminal. The forms for programs have the same
// figures, of every trial: see raw.
type column struct {
	head   string
	long   string // its head on a page, if that is another one
	in     form
	isWord bool // else it is a figure, and stands to the right
	isCode bool // in Markdown it stands between backticks
	cell   func(figure.Row) string
	raw    string // the column of the CSV export that it is made from; empty: made from several, or from none
}

var policyColumn = column{head: "policy", isWord: true, isCode: true, raw: "policy", cell: func(r figure.Row) string { return r.Cell.Policy.String() }}

// groupColumns are those of the table of a group. The notes say which of them are of a trial
// and which of a record.
var groupColumns = []column{
	policyColumn,
	{head: "records/s", raw: "records", cell: func(r figure.Row) string { return count(r.Rate.Median) }},
	{head: "95 %", long: "95 % interval", cell: func(r figure.Row) string { return span(r.Rate.Low, r.Rate.High) }},
	{head: "cost", cell: func(r figure.Row) string { return advise.Times(r.Cost.Comparison) }},
	{isWord: true, cell: word},
	{head: "MiB/s", raw: "size_bytes", cell: func(r figure.Row) string { return mebibytes(r.Throughput) }},
	{head: "records a trial", in: inPage, raw: "records", cell: func(r figure.Row) string { return count(float64(r.Cell.Records)) }},
	{head: "elapsed", in: inPage, raw: "elapsed_ns", cell: func(r figure.Row) string { return nanoseconds(float64(r.Elapsed)) }},
	{head: "user", long: "user CPU a record", in: inText | inPage, raw: "user_cpu_ns", cell: func(r figure.Row) string { return nanoseconds(float64(r.PerRecord.User)) }},
	{head: "system", long: "system CPU a record", in: inText | inPage, raw: "system_cpu_ns", cell: func(r figure.Row) string { return nanoseconds(float64(r.PerRecord.System)) }},
	{head: "CPU a record", in: inMarkdown, cell: func(r figure.Row) string { return nanoseconds(float64(r.PerRecord.CPU)) }},
	{head: "calls", long: "calls a record, observed", raw: "system_calls_total", cell: func(r figure.Row) string { return calls(r.Calls.Observed) }},
	{head: "own", long: "calls by the Writer", raw: "writer_system_calls", cell: func(r figure.Row) string { return calls(r.Calls.Predicted) }},
	{head: "alloca\u00adtions a record", in: inPage, raw: "allocations", cell: func(r figure.Row) string { return calls(r.PerRecord.Allocations) }},
	{head: "p50", long: "Write p50", raw: "latency_p50_ns", cell: func(r figure.Row) string { return percentile(r.Latency.P50) }},
	{head: "p99", raw: "latency_p99_ns", cell: func(r figure.Row) string { return percentile(r.Latency.P99) }},
	{head: "p99.9", in: inPage, raw: "latency_p999_ns", cell: func(r figure.Row) string { return percentile(r.Latency.P999) }},
	{head: "longest timed", in: inPage, raw: "latency_max_ns", cell: func(r figure.Row) string { return percentile(r.Latency.Max) }},
	{head: "lost at a power cut", in: inMarkdown, isWord: true, cell: func(r figure.Row) string { return r.Cell.Policy.Loss().Power.String() }},
}

// usageColumns are where the time of a trial goes, and what else the process used.
var usageColumns = []column{
	policyColumn,
	stage("open", func(s figure.Stages) figure.Number { return s.Open }),
	stage("write", func(s figure.Stages) figure.Number { return s.Write }),
	stage("flush", func(s figure.Stages) figure.Number { return s.Flush }),
	stage("sync", func(s figure.Stages) figure.Number { return s.Sync }),
	stage("close", func(s figure.Stages) figure.Number { return s.Close }),
	{head: "buffers in memory", cell: func(r figure.Row) string { return r.Memory.String() }},
	{head: "voluntary switches a record", cell: func(r figure.Row) string { return calls(r.PerRecord.VoluntarySwitches) }},
	{head: "involuntary switches", cell: func(r figure.Row) string { return calls(r.PerRecord.ForcedSwitches) }},
	{head: "minor faults", cell: func(r figure.Row) string { return calls(r.PerRecord.MinorFaults) }},
	{head: "major faults", cell: func(r figure.Row) string { return calls(r.PerRecord.MajorFaults) }},
	{head: "blocks read", cell: func(r figure.Row) string { return calls(r.PerRecord.BlocksIn) }},
	{head: "blocks written", cell: func(r figure.Row) string { return calls(r.PerRecord.BlocksOut) }},
	{head: "allocated bytes a record", cell: func(r figure.Row) string { return calls(r.PerRecord.Allocated) }},
}

func stage(head string, of func(figure.Stages) figure.Number) column {
	return column{head: head, cell: func(r figure.Row) string { return nanoseconds(float64(of(r.Stages))) }}
}

// of returns the columns that a form has.
func (f form) of(columns []column) (some []column) {
	for _, c := range columns {
		if c.in == inAll || c.in&f != 0 {
			some = append(some, c)
		}
	}
	return some
}

func heads(columns []column, f form) (row []string) {
	for _, c := range f.of(columns) {
		head := c.head
		if f == inPage && c.long != "" {
			head = c.long
		}
		row = append(row, head)
	}
	return row
}

func texts(columns []column, f form, r figure.Row) (row []string) {
	for _, c := range f.of(columns) {
		cell := c.cell(r)
		if f == inMarkdown && c.isCode {
			cell = markdownCode(cell)
		}
		row = append(row, cell)
	}
	return row
}

func alignment(columns []column, f form) (configs []table.ColumnConfig) {
	for i, c := range f.of(columns) {
		align := text.AlignRight
		if c.isWord {
			align = text.AlignLeft
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	return configs
}
