package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

// A form is a place where a table of figures is shown.
type form uint8

const (
	inText form = 1 << iota
	inPage
	inMarkdown
	inAll form = 0 // of a column that names no form
)

// A column is a column of a table that has a row for each policy. It is in every form unless it names
// some: a page has room for more columns than a terminal. The forms for programs have the same figures
// of every trial: see raw.
type column struct {
	head   string
	long   string // its head on a page, if it differs
	in     form
	isWord bool // it has words and is left-aligned; else it has figures
	isCode bool // in Markdown it stands between backticks
	open   bool // only where records are due at a rate
	closed bool // only where they are not
	rank   int  // the highest rank is left out first on a narrow terminal; 0 is never left out
	cell   func(figure.Row) string
	raw    string // its source in the CSV export; empty: several columns, or none
}

var policyColumn = column{head: "policy", isWord: true, isCode: true, raw: "policy", cell: policyText}

func policyText(r figure.Row) string { return r.Cell.Policy.String() }

// groupColumns are the columns of a group's table. The notes tell which of them are for a trial and
// which for a record.
var groupColumns = []column{
	policyColumn,
	{head: "to write", long: "to write, a record", rank: 3, closed: true, raw: "write_ns", cell: func(r figure.Row) string { return nanoseconds(r.Net.Write.Median) }},
	{long: "95 % interval", head: "95 %", in: inPage, closed: true, cell: func(r figure.Row) string { return interval(r.Net.Write) }},
	{head: "a Write", long: "mean time of a Write", rank: 3, open: true, cell: func(r figure.Row) string { return nanoseconds(r.Net.Service.Median) }},
	{long: "95 % interval", head: "95 %", in: inPage, open: true, cell: func(r figure.Row) string { return interval(r.Net.Service) }},
	{head: "cost", cell: advise.Cost},
	{head: "95 %", long: "cost, 95 % interval", rank: 2, isWord: true, cell: advise.CostInterval},
	{isWord: true, cell: word},
	{head: "durable", long: "until durable, a record", rank: 4, closed: true, raw: "sync_ns", cell: func(r figure.Row) string { return nanoseconds(r.Net.Durable.Median) }},
	{head: "oldest", long: "the oldest byte that was not durable", rank: 4, open: true, raw: "oldest_not_durable_ns", cell: func(r figure.Row) string {
		// Data that is never synced is never durable.
		if r.Cell.Policy.Sync.Mode == holdfast.SyncNever {
			return none
		}
		return duration(r.Oldest)
	}},
	{head: "syncs", long: "syncs that fell due, a trial", rank: 5, open: true, raw: "syncs_while_writing", cell: func(r figure.Row) string {
		if !r.SyncsWriting.Known() {
			return none
		}
		return fmt.Sprintf("%.0f", float64(r.SyncsWriting))
	}},
	{head: "cpu", long: "CPU a record", rank: 6, raw: "user_cpu_ns", cell: func(r figure.Row) string {
		// The CPU time is net, so it may be smaller than the variation of the harness.
		if s := r.Net.CPU; r.Net.Subtracted && !(s.Lower() > 0) {
			if s.Upper() > 0 {
				return "<" + nanoseconds(s.Upper())
			}
			return none
		}
		return nanoseconds(r.Net.CPU.Median)
	}},
	{head: "p99", long: "p99 of a Write", rank: 7, raw: "latency_p99_ns", cell: func(r figure.Row) string { return percentile(r, timed(r).P99) }},
	{head: "p99 of the rounds", in: inPage, cell: func(r figure.Row) string { return interval(timed(r).Rounds["p99"]) }},
	{head: "due p99", long: "p99 from when a record was due", rank: 8, open: true, raw: "latency_p99_ns", cell: func(r figure.Row) string { return duration(r.Latency.P99) }},
	{head: "calls", long: "calls a record, observed", rank: 9, raw: "system_calls_total", cell: func(r figure.Row) string { return calls(r.Net.Calls) }},
	{head: "p50", long: "p50 of a Write", rank: 10, raw: "latency_p50_ns", cell: func(r figure.Row) string { return percentile(r, timed(r).P50) }},
	{head: "p50 of the rounds", in: inPage, cell: func(r figure.Row) string { return interval(timed(r).Rounds["p50"]) }},
	{head: "records/s", rank: 11, raw: "records", cell: func(r figure.Row) string { return count(r.Rate.Median) }},
	{head: "MiB/s", rank: 12, raw: "size_bytes", cell: func(r figure.Row) string { return mebibytes(r.Throughput) }},
	{head: "own", long: "calls by the Writer", rank: 13, raw: "writer_system_calls", cell: func(r figure.Row) string { return calls(r.Calls.Predicted) }},
	{head: "records a trial", in: inPage, raw: "records", cell: func(r figure.Row) string { return count(float64(r.Cell.Records)) }},
	{head: "elapsed", in: inPage, raw: "elapsed_ns", cell: func(r figure.Row) string { return nanoseconds(float64(r.Elapsed)) }},
	{head: "alloca\u00adtions a record", in: inPage, raw: "allocations", cell: func(r figure.Row) string { return calls(r.PerRecord.Allocations) }},
	{head: "p99.9", in: inPage, raw: "latency_p999_ns", cell: func(r figure.Row) string { return percentile(r, timed(r).P999) }},
	{head: "longest timed", in: inPage, raw: "latency_max_ns", cell: func(r figure.Row) string { return duration(timed(r).Max) }},
	{head: "lost at a power cut", in: inMarkdown | inPage, isWord: true, cell: func(r figure.Row) string { return r.Cell.Policy.Loss().Power.String() }},
}

// timed is the time of single Writes, from the call to the return.
func timed(r figure.Row) figure.Latency {
	if r.Service != nil {
		return *r.Service
	}
	return r.Latency
}

// interval writes the ends of a time's interval.
func interval(s figure.Summary) string {
	if !s.HasInterval() {
		return none
	}
	return nanoseconds(s.Low) + "–" + nanoseconds(s.High)
}

// usageColumns show how the time of a trial is spent, and other resources that the process used.
func usageColumns() []column {
	return []column{
		policyColumn,
		stage("open", func(s figure.Stages) figure.Number { return s.Open }),
		stage("write", func(s figure.Stages) figure.Number { return s.Write }),
		stage("flush", func(s figure.Stages) figure.Number { return s.Flush }),
		stage("sync", func(s figure.Stages) figure.Number { return s.Sync }),
		stage("close", func(s figure.Stages) figure.Number { return s.Close }),
		{head: "user CPU a record", raw: "user_cpu_ns", cell: func(r figure.Row) string { return nanoseconds(float64(r.PerRecord.User)) }},
		{head: "system CPU a record", raw: "system_cpu_ns", cell: func(r figure.Row) string { return nanoseconds(float64(r.PerRecord.System)) }},
		{head: "buffers in memory", cell: func(r figure.Row) string { return r.Memory.String() }},
		{head: "voluntary switches a record", cell: func(r figure.Row) string { return calls(r.PerRecord.VoluntarySwitches) }},
		{head: "involuntary switches", cell: func(r figure.Row) string { return calls(r.PerRecord.ForcedSwitches) }},
		{head: "minor faults", cell: func(r figure.Row) string { return calls(r.PerRecord.MinorFaults) }},
		{head: "major faults", cell: func(r figure.Row) string { return calls(r.PerRecord.MajorFaults) }},
		{head: "blocks read", cell: func(r figure.Row) string { return calls(r.PerRecord.BlocksIn) }},
		{head: "blocks written", cell: func(r figure.Row) string { return calls(r.PerRecord.BlocksOut) }},
		{head: "allocated bytes a record", cell: func(r figure.Row) string { return calls(r.PerRecord.Allocated) }},
	}
}

func stage(head string, of func(figure.Stages) figure.Number) column {
	return column{head: head, cell: func(r figure.Row) string { return nanoseconds(float64(of(r.Stages))) }}
}

// of returns the columns that a form has for a load.
func (f form) of(columns []column, l figure.Load) (some []column) {
	for _, c := range columns {
		if (c.in == inAll || c.in&f != 0) && (!c.open || l.Open()) && (!c.closed || !l.Open()) {
			some = append(some, c)
		}
	}
	return some
}

func heads(columns []column, f form) (row []string) {
	for _, c := range columns {
		head := c.head
		if f == inPage && c.long != "" {
			head = c.long
		}
		row = append(row, head)
	}
	return row
}

func texts(columns []column, f form, r figure.Row) (row []string) {
	for _, c := range columns {
		cell := c.cell(r)
		if f == inMarkdown && c.isCode {
			cell = markdownCode(cell)
		}
		row = append(row, cell)
	}
	return row
}

func alignment(columns []column) (configs []table.ColumnConfig) {
	for i, c := range columns {
		align := text.AlignRight
		if c.isWord {
			align = text.AlignLeft
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	return configs
}

// word returns the verdict on the row's cost.
func word(r figure.Row) string {
	switch {
	case !r.Period.Judged():
		return "period not reached"
	case r.Control:
		return "control"
	case r.Fastest && !r.Alone:
		return "among the fastest"
	case r.Fastest:
		return "fastest"
	}
	return r.Cost.Word()
}
