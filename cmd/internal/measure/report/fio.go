package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// Fio writes the job file of fio that comes nearest to one cell of the run, so
// that others can check our figures with another program. It takes the advised policy's cell of the
// first group, else the fastest. The job's comments give our measurement, the command to run it, and
// the properties of the cell that fio can't express. If nothing was measured it writes nothing and
// returns [figure.ErrNoRound].
//
// The job is safe if it is run as its comments say. fio overwrites files without asking. But a new
// directory has none, and fio makes no directory.
func Fio(w io.Writer, run result.Run) error {
	s, err := newSheet(nil, run)
	if err != nil {
		return err
	}
	if len(s.Groups) == 0 {
		return figure.ErrNoRound
	}
	rows, why := s.Groups[0].Rows, "the policy that the advice names"
	i := slices.IndexFunc(rows, s.advises)
	if i < 0 {
		why = "the fastest policy"
		i = max(0, slices.IndexFunc(rows, func(r figure.Row) bool { return r.Fastest }))
	}
	_, err = io.WriteString(w, newFioJob(s, rows[i], why).text())
	return err
}

// A fioJob is a cell in fio's terms.
type fioJob struct {
	sheet
	figure.Row
	why   string // the reason for choosing this cell
	moves figure.Moves
	name  string // name of the directory and the file
	write int64  // bytes of a write(2)
	every int64  // writes between two fdatasync(2); 0: there is none
	end   bool   // with a final fsync(2)
}

func newFioJob(s sheet, r figure.Row, why string) fioJob {
	j := fioJob{sheet: s, Row: r, why: why, moves: s.Moves(r.Cell), name: fmt.Sprintf("holdfast-fio-%d", s.Run.Header.Seed)}
	j.write = j.bytesOfWrite()
	switch p := r.Cell.Policy; {
	case p.Sync.Mode == holdfast.SyncNever:
	case p.Sync.Mode == holdfast.SyncClose:
		j.end = true
	case p.Sync.Mode == holdfast.SyncGroup, p.Sync.Mode == holdfast.SyncEach:
		j.every = j.writesOfSync()
	case p.Sync.Bytes > 0 && p.Sync.Every == 0:
		j.end = true
		j.every = (int64(p.Sync.Bytes) + j.write - 1) / j.write
	default:
		// One of a trial's syncs is the final one.
		j.end = true
		if j.moves.Syncs > 1 {
			j.every = j.writesOfSync()
		}
	}
	return j
}

// bytesOfWrite returns the size of a write(2): a record, a full buffer, or the average in whole records
// if a period or a group's sync flushed.
func (j fioJob) bytesOfWrite() int64 {
	record, buffer := j.Cell.RecordBytes, int64(cmp.Or(j.Cell.Policy.FlushBytes, j.Cell.Policy.Buffer))
	if buffer < record {
		return record
	}
	if j.moves.Flushes == 0 {
		return buffer
	}
	full := math.Ceil(float64(j.moves.Size) / float64(buffer))
	if float64(j.moves.Flushes) <= full+max(1, full/20) {
		return buffer
	}
	records := math.Round(float64(j.moves.Size) / float64(j.moves.Flushes) / float64(record))
	return record * max(1, int64(records))
}

// writesOfSync returns how many writes one sync covered.
func (j fioJob) writesOfSync() int64 {
	if j.moves.Syncs == 0 {
		return 1
	}
	return max(1, int64(math.Round(float64(j.moves.Flushes/j.moves.Syncs))))
}

// fioWidth is the width of the comments.
const fioWidth = 100

func (j fioJob) text() string {
	var b strings.Builder
	comment := func(format string, args ...any) {
		b.WriteString(wrap("; "+oneLine(fmt.Sprintf(format, args...)), fioWidth, ";   "))
	}
	h := j.Run.Header
	comment("%s: one cell of a run, as the most similar fio job, so that fio can check the figures.", h.Program)
	b.WriteString(";\n")
	comment("The cell: %s, %s, %d records a trial (%s).", j.Cell.Policy, title(figure.LoadOf(j.Cell)), int64(j.moves.Records), j.why)
	where := fmt.Sprintf("%s, seed %d", plural(j.Rounds, "round"), h.Seed)
	if fs := machine.Get(h.Machine, "file system").Value; fs != machine.Unknown {
		where += ", on " + fs
	}
	comment("We measured, %s: %s.", where, j.measured())
	b.WriteString(";\n")
	comment("Run it in a new directory on the measured disk (%s), on a quiet machine, and several times, because one run shows no spread:", h.Dir)
	fmt.Fprintf(&b, ";   mkdir %[1]s && fio /path/to/this/file && rmdir %[1]s\n", j.name)
	comment("fio overwrites files without asking: mkdir fails if the directory exists, and without a directory fio refuses to run.")
	b.WriteString(";\n; What the job lacks, because fio can't express it:\n")
	for _, l := range j.left() {
		comment("- %s", l)
	}
	fmt.Fprintf(&b, "\n[holdfast]\n%s", strings.Join(j.options(), "\n")+"\n")
	return b.String()
}

// measured writes our figure in fio's terms.
func (j fioJob) measured() string {
	spread := ""
	if j.Rate.HasInterval() {
		spread = fmt.Sprintf(" (95 %%: %s)", span(j.Rate.Low, j.Rate.High))
	}
	return fmt.Sprintf("%s records/s%s, which is %s MiB/s (compare with fio's BW) in %s writes/s (compare with its IOPS)",
		count(j.Rate.Median), spread, mebibytes(j.Throughput), count(float64(j.Throughput)/float64(j.write)))
}

func (j fioJob) options() []string {
	writes := math.Ceil(float64(j.moves.Size) / float64(j.write)) // round up: fio would leave out an incomplete write
	list := []string{
		"directory=" + j.name, "filename=" + j.name + ".tmp", "unlink=1",
		"ioengine=sync", "rw=write", fmt.Sprintf("bs=%d", j.write), fmt.Sprintf("size=%d", j.write*max(1, int64(writes))), "numjobs=1",
		"create_on_open=1", "fallocate=none", "overwrite=0", "invalidate=0",
	}
	if j.every > 0 {
		list = append(list, fmt.Sprintf("fdatasync=%d", j.every))
	}
	if j.end {
		list = append(list, "end_fsync=1")
	}
	if j.Cell.Rate > 0 {
		list = append(list, fmt.Sprintf("rate=,%.0f", j.Cell.Rate*float64(j.Cell.RecordBytes)))
	}
	return list
}

// left lists the properties that the job leaves out.
func (j fioJob) left() []string {
	list := append(j.leftOfMemory(), j.leftOfSync()...)
	latency := fmt.Sprintf("latency: a Write's is p50 %s, p99 %s", duration(j.Latency.P50), duration(j.Latency.P99))
	switch p := j.Cell.Policy; {
	case p.Sync.Waits():
		latency += ", with the sync that it waits for; fio's clat is write(2) alone, and its syncs are reported apart (fsync/fdatasync; \"sync\" in JSON): compare a Write with the sum"
	case int64(p.Buffer) >= j.Cell.RecordBytes:
		latency += ", mostly of a copy in memory; fio's clat is that of a write(2) of bs bytes, which few Writes wait for"
	default:
		latency += ", which may be set beside fio's clat"
	}
	list = append(list, latency)
	if j.Cell.Rate > 0 {
		list = append(list, fmt.Sprintf("%s records/s are due one by one, and their latency counts from when each was due; rate paces bytes, and fio's latency counts from when it began", count(j.Cell.Rate)))
	}
	if c := j.Cell.Cache; c != "" && c != result.NewFile {
		list = append(list, fmt.Sprintf("the cell appends to a file whose page cache is %s; the job writes a new file", c))
	}
	if j.Cell.Steady {
		list = append(list, "the trials went on until the throughput was steady; the job writes as much as the median of them did")
	}
	return append(list, fmt.Sprintf("clock: holdfast's runs from the first Write to the return of the last (%s a trial), less the cost of measuring and without a sync at the end; fio's runs to the last write or sync, in whole milliseconds: give a larger size if that is too coarse", nanoseconds(float64(cmp.Or(j.Stages.Write, j.Elapsed)))))
}

// leftOfMemory lists the differences before a write(2).
func (j fioJob) leftOfMemory() (list []string) {
	p, n := j.Cell.Policy, j.Cell.Writers
	if int64(p.Buffer) >= j.Cell.RecordBytes {
		list = append(list, fmt.Sprintf("memory: the Writer copies %s of %s into its buffer for each write(2), and fio does not: the whole CPU time is %s a record",
			plural(int(j.write/j.Cell.RecordBytes), "record"), holdfast.Size(j.Cell.RecordBytes), nanoseconds(float64(j.PerRecord.CPU))))
	}
	if p.FlushBytes > 0 {
		list = append(list, fmt.Sprintf("flush by bytes: a write(2) starts when %v wait, and later records go into the rest of the buffer of %v; fio has no buffer", p.FlushBytes, p.Buffer))
	}
	if p.FlushEvery > 0 {
		list = append(list, fmt.Sprintf("flush by time: a byte waits at most %v for its write(2); fio writes when it has bs bytes", p.FlushEvery))
	}
	if n > 1 && p.Sync.Mode != holdfast.SyncGroup {
		list = append(list, fmt.Sprintf("many writers: %d goroutines append to one file through one Writer, which makes one write(2) at a time, as the one job does; numjobs=%d would write over the same bytes", n, n))
	}
	return list
}

// leftOfSync lists the differences in when and how bytes become durable.
func (j fioJob) leftOfSync() (list []string) {
	p := j.Cell.Policy
	if p.Sync.Mode == holdfast.SyncGroup && j.Cell.Writers > 1 {
		list = append(list, fmt.Sprintf("group commit: %d goroutines wait for syncs that they share; a write of bs bytes stands for the average batch (%.1f records a sync), without waking the goroutines that wait",
			j.Cell.Writers, float64(j.moves.Records/j.moves.Syncs)))
	}
	switch s := p.Sync; {
	case s.Bytes > 0 && s.Every == 0:
		list = append(list, fmt.Sprintf("sync by bytes: the Writer's sync starts when %v are written and not durable, and its Writes go on; fio's comes after the %s that hold as much, and its writes wait for it; its sync_file_range makes nothing durable",
			s.Bytes, plural(int(j.every), "write")))
	case s.Mode == holdfast.SyncPeriodic:
		by := "time"
		if s.Bytes > 0 {
			by = "time and bytes"
		}
		if j.every == 0 {
			list = append(list, fmt.Sprintf("sync by %s: none fell due every %v in trials of %s", by, s, nanoseconds(float64(cmp.Or(j.Stages.Write, j.Elapsed)))))
			break
		}
		list = append(list, fmt.Sprintf("sync by %s: the Writer syncs every %v while its Writes go on; fio by count (fdatasync=%d is the average), and its writes wait for each", by, s, j.every))
	}
	if j.end {
		list = append(list, "the sync at the end: the Writer's is fdatasync(2) and an fsync(2) of the directory, end_fsync's is fsync(2) of the file")
	} else if j.every > 0 {
		list = append(list, "syncs: the first of the Writer's syncs the directory too, and each looks whether the file still has a name (fstat(2)); fio leaves out the sync behind the last write")
	}
	return list
}

// span writes both ends of an interval as counts.
func span(low, high float64) string {
	if math.IsNaN(low) || math.IsNaN(high) {
		return none
	}
	return strings.TrimSuffix(count(low), unitOf(count(high))) + "…" + count(high)
}
