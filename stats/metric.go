package stats

// A Source is the Stats of a Writer, a rotating log, a set of files or a write-ahead log, for
// exporters.
type Source interface {
	// Metrics returns the counts. Their number, order and names are the same for each value of a
	// type, also for its zero value.
	Metrics() []Metric
	// Latencies returns the times of writes to files and of syncs.
	Latencies() (flush, sync *Histogram)
}

// A Metric is one count, with its name, unit and help for an exporter.
type Metric struct {
	Name  string // without the prefix holdfast, such as not_flushed
	Unit  string // by UCUM: By, s, or {record}
	Help  string
	Kind  Kind
	Value float64
}

// A Kind tells how a Metric changes, and the meaning of its sum over several logs.
type Kind uint8

const (
	Counter Kind = iota // it only grows
	UpDown              // it falls too, and the sum over logs has a meaning
	Gauge               // it falls too, and such a sum has none
)

// Metrics implements [Source].
func (c Counts) Metrics() []Metric {
	return []Metric{
		{"writes", "{record}", "Records that were accepted.", Counter, float64(c.Writes)},
		{"flushes", "{call}", "Writes to files.", Counter, float64(c.Flushes)},
		{"syncs", "{call}", "Syncs of files.", Counter, float64(c.Syncs)},
		{"system_calls", "{call}", "Of a Writer: flushes, syncs, Close, and the calls for the file's name.", Counter, float64(c.SystemCalls)},
		{"waits", "{record}", "Writes that waited because memory was full.", Counter, float64(c.Waits)},
		{"errors", "{failure}", "Failures, each as OnError has it.", Counter, float64(c.Errors)},
		{"not_flushed", "By", "What the end of the process would take.", UpDown, float64(c.NotFlushed)},
		{"not_durable", "By", "What the end of the machine would take at most.", UpDown, float64(c.NotDurable)},
		{"oldest_not_durable", "s", "How long the oldest of these bytes has waited.", Gauge, c.Oldest.Seconds()},
	}
}

// Latencies implements [Source].
func (c Counts) Latencies() (flush, sync *Histogram) { return &c.Flush, &c.Sync }
