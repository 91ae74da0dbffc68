package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A kind is the first key of every line. A reader skips kinds that it does not know.
type kind string

const (
	kindHeader  kind = "header"
	kindResume  kind = "resume"
	kindTrial   kind = "trial"
	kindControl kind = "control"
	kindEnd     kind = "end"
)

// A File is a results file while it is written. Every method writes its complete line
// to the kernel before it returns, so a killed program leaves all that was measured.
// After an error the file ends with its last complete line, and the caller may go on
// writing. It is for one goroutine.
type File struct {
	file *os.File
	size int64 // of the whole lines
}

// Create makes the file at path and writes its header. If the file exists it stays as it
// is, and the error is fs.ErrExist.
func Create(path string, h Header) (*File, error) {
	dir, err := os.OpenRoot(filepath.Dir(path)) // an error removes the file here, even if the path then leads elsewhere
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := CreateIn(dir, filepath.Base(path), h)
	return f, workdir.Named(err, path)
}

// CreateIn is Create in an open directory.
func CreateIn(dir *os.Root, name string, h Header) (*File, error) {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	file := &File{file: f}
	if err := file.line(header{kindHeader, h}); err != nil {
		return nil, errors.Join(err, f.Close(), dir.Remove(name))
	}
	return file, nil
}

// ErrChanged reports that a file has another run than before.
var ErrChanged = errors.New("holds another run than when it was read")

// Resume opens the file at path, which has an unfinished run, cuts off a last line
// that is not complete, and appends r. It returns the run as it was before. It does not
// change a file that is not one of results, is of another version, or for which same
// returns false. A nil same accepts every run.
//
// No other process may write to the file meanwhile. As after [Create], it is not synced
// before Close.
func Resume(path string, r Resumption, same func(Run) bool) (Run, *File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return Run{}, nil, err
	}
	file := &File{file: f}
	run, err := file.resume(r, same)
	if err != nil {
		return run, nil, errors.Join(err, f.Close())
	}
	return run, file, nil
}

func (f *File) resume(r Resumption, same func(Run) bool) (Run, error) {
	text, err := io.ReadAll(f.file)
	if err != nil {
		return Run{}, err
	}
	run, err := Read(bytes.NewReader(text))
	if err != nil {
		return run, err
	}
	if run.Header.SchemaVersion != SchemaVersion {
		return run, fmt.Errorf("%w: schema_version %d, and only %d can go on", ErrOlder, run.Header.SchemaVersion, SchemaVersion)
	}
	if same != nil && !same(run) {
		return run, ErrChanged
	}
	f.size = int64(bytes.LastIndexByte(text, '\n') + 1)
	_, err = f.file.Seek(f.size, io.SeekStart)
	if err := errors.Join(f.file.Truncate(f.size), err); err != nil {
		return run, err
	}
	return run, f.line(resumption{kindResume, r})
}

type header struct {
	Kind kind `json:"kind"`
	Header
}

type resumption struct {
	Kind kind `json:"kind"`
	Resumption
}

type trial struct {
	Kind kind `json:"kind"`
	Trial
}

type control struct {
	Kind kind `json:"kind"`
	Control
}

type end struct {
	Kind kind `json:"kind"`
	End
}

// Trial appends a trial's line.
func (f *File) Trial(t Trial) error { return f.line(trial{kindTrial, t}) }

// Control appends the line of a control.
func (f *File) Control(c Control) error { return f.line(control{kindControl, c}) }

// Close appends the end line, syncs and closes the file.
func (f *File) Close(e End) error {
	return errors.Join(f.line(end{kindEnd, e}), f.file.Sync(), f.file.Close())
}

func (f *File) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	n, err := f.file.Write(append(text, '\n'))
	if err != nil {
		_, seekErr := f.file.Seek(f.size, io.SeekStart)
		return errors.Join(err, f.file.Truncate(f.size), seekErr)
	}
	f.size += int64(n)
	return nil
}

// Write writes a run as [Read] reads it. A torn line is not written again. It refuses trials that
// [ReadMerged] has merged.
func Write(w io.Writer, run Run) error {
	if slices.ContainsFunc(run.Trials, func(t *Trial) bool { return t.Latency.mean > 0 }) {
		return errors.New("the distributions of single trials are merged, and can't be written")
	}
	e := json.NewEncoder(w)
	if err := e.Encode(header{kindHeader, run.Header}); err != nil {
		return err
	}
	resumed, controls := run.Resumed, run.Controls
	for i, t := range run.Trials {
		// Every process begins with round 0.
		if i > 0 && t.Round == 0 && t.Position == 1 && len(resumed) > 0 {
			if err := e.Encode(resumption{kindResume, resumed[0]}); err != nil {
				return err
			}
			resumed = resumed[1:]
		}
		for ; len(controls) > 0 && t.Round > 0 && controls[0].Round <= t.Round; controls = controls[1:] {
			if err := e.Encode(control{kindControl, controls[0]}); err != nil {
				return err
			}
		}
		if err := e.Encode(trial{kindTrial, *t}); err != nil {
			return err
		}
	}
	for _, r := range resumed {
		if err := e.Encode(resumption{kindResume, r}); err != nil {
			return err
		}
	}
	if run.End == nil {
		return nil
	}
	return e.Encode(end{kindEnd, *run.End})
}

// A FormatError reports which line of a results file is wrong, and why.
type FormatError struct {
	Line int // from 1
	Err  error
}

func (e *FormatError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *FormatError) Unwrap() error { return e.Err }

// The reasons to refuse a file.
var (
	ErrNotResults = errors.New("not a results file of holdfast: the first line is not a header")
	ErrNoHeader   = errors.New("breaks off within its first line, so nothing was measured yet")
	ErrNUL        = errors.New("holds NUL bytes, as a power cut or a broken disk leaves them")
	ErrNewer      = errors.New("was written by a newer holdfast")
	ErrOlder      = errors.New("was written by an older holdfast") // by Resume alone
	ErrTooMany    = errors.New("too many trials for one report")
)

// A report holds all trials in memory: of one file MostTrials are read by [ReadMerged] for figures, MostWhole by
// [Read]. Of files that are compared it is MostBeside, for most trials are compared as copies at one speed of the
// CPU. A report of a million has less than 1 GiB.
const (
	MostTrials = 1_000_000
	MostBeside = 600_000
	MostWhole  = 200_000
)

// Read reads a results file. A last line that is not complete, or a missing end
// line, is no error: the Run says so. For any other wrong line the error is a
// *FormatError.
//
// NUL bytes at the end are a line that is not complete. A power cut leaves them in a file
// that had grown before its bytes were on the disk.
func Read(r io.Reader) (Run, error) {
	return reader{decode: (*decoder).trial, most: MostWhole, apart: math.MaxInt}.read(r)
}

// ReadMerged is Read for figures, which need less memory. Of the first trials it keeps the distribution
// of each. Those of the others are merged by cell, so [Pool] can't have them of single
// rounds, nor [Write] write them. It refuses more than so many trials.
func ReadMerged(r io.Reader, most int) (Run, error) {
	return reader{decode: (*decoder).trial, most: most, apart: trialsApart}.read(r)
}

// trialsApart is how many trials [ReadMerged] keeps as they are: those of most runs.
const trialsApart = 2000

// ReadTimes is Read for many files, if the times alone are wanted. Of a trial it takes the cell,
// the round, the records, the stages, the turns, and the percentiles of single Writes. It does not
// look into histograms, so a damaged one is no error. All else is zero.
func ReadTimes(r io.Reader) (Run, error) {
	return reader{decode: decodeTimes, most: MostTrials, apart: math.MaxInt}.read(r)
}

// A reader reads one results file.
type reader struct {
	decode func(*decoder, []byte, *Trial) bool
	most   int // trials
	apart  int // about so many trials come before the first whose latencies are merged

	run    Run
	cells  map[string]string // their names
	begin  int               // of the last round, in the trials
	held   []bin             // of that round
	sums   map[sumOf]*sum
	rounds map[int]bool // the rounds before, and if they have latencies in sums
}

func (r reader) read(from io.Reader) (Run, error) {
	text := bufio.NewReaderSize(from, 64<<10)
	r.cells, r.sums, r.rounds = map[string]string{}, map[sumOf]*sum{}, map[int]bool{}
	b, next := &batch{}, &batch{}
	for b.read(text, 0, r); ; b, next = next, b {
		b.decoded.Wait()
		if b.err == nil { // the next is decoded meanwhile
			next.read(text, b.before+len(b.lines), r)
		}
		if err := r.takeBatch(b); err != nil {
			next.decoded.Wait()
			return Run{}, err
		}
		if b.err != nil || r.run.Torn {
			next.decoded.Wait()
			return r.run, nil
		}
	}
}

// takeBatch adds the lines of a batch.
func (r *reader) takeBatch(b *batch) error {
	if b.err != nil && b.err != io.EOF {
		return b.err
	}
	for i, line := range b.lines {
		number := b.before + i + 1
		if number > 1 && !bytes.HasSuffix(line, []byte("\n")) {
			r.run.Torn, r.run.TornAt = true, number
			break
		}
		var err error
		if t := &b.trials[i]; t.Records > 0 && number > 1 {
			err = r.append(t)
		} else {
			err = r.take(line, number == 1)
		}
		if err == nil {
			err = r.merge(false)
		}
		if err != nil {
			return &FormatError{Line: number, Err: err}
		}
		r.held = append(r.held, b.bins[i]...)
	}
	if b.err == io.EOF || r.run.Torn {
		if err := r.merge(true); err != nil {
			return &FormatError{Line: b.before + len(b.lines), Err: err}
		}
	}
	return nil
}

// merge merges the latencies of a round that is at its end: all is read, or the last trial is
// of another.
func (r *reader) merge(end bool) error {
	trials := r.run.Trials[r.begin:]
	if len(trials) == 0 || !end && trials[len(trials)-1].Round == trials[0].Round {
		return nil
	}
	if !end {
		trials = trials[:len(trials)-1]
	}
	round, cells := trials[0].Round, 0
	for i := range r.run.Header.Cells {
		if r.run.Header.Cells[i].RunsIn(round) {
			cells++
		}
	}
	merged, again := r.rounds[round]
	if merged {
		return fmt.Errorf("round %d again, after others", round)
	}
	r.rounds[round] = merge(r.sums, trials, r.held, round > 0 && !again && cells == len(trials))
	r.begin += len(trials)
	r.held = r.held[:0]
	return nil
}

// A batch is some lines, which all CPUs decode together: it is what reading spends its time on.
type batch struct {
	before  int // lines
	lines   [][]byte
	room    []byte  // of the lines
	trials  []Trial // zero for a line that is not one as this program writes it: [reader.take] finds what it is
	bins    [][]bin // of each trial whose latencies are merged
	workers []*decoder
	decoded sync.WaitGroup
	err     error // after the lines; io.EOF is the end of the file
}

const batchLines = 1024

// read takes the next lines with their ends, and begins to decode them; an empty file has one empty line.
func (b *batch) read(from *bufio.Reader, before int, r reader) {
	if b.before, b.err = before, nil; b.bins == nil {
		b.bins = make([][]bin, batchLines)
		for range runtime.GOMAXPROCS(0) {
			b.workers = append(b.workers, &decoder{texts: map[string]string{}})
		}
	}
	b.room, b.lines = b.room[:0], b.lines[:0]
	var ends []int
	for len(ends) < batchLines && b.err == nil {
		begin := len(b.room)
		for b.err = bufio.ErrBufferFull; b.err == bufio.ErrBufferFull; {
			var part []byte
			part, b.err = from.ReadSlice('\n')
			b.room = append(b.room, part...)
		}
		if len(b.room) > begin || before == 0 && len(ends) == 0 {
			ends = append(ends, len(b.room))
		}
	}
	begin := 0
	for _, end := range ends {
		b.lines = append(b.lines, b.room[begin:end])
		begin = end
	}
	b.trials = make([]Trial, len(b.lines))
	var taken atomic.Int64
	for _, d := range b.workers {
		d.merges, d.bins = before >= r.apart, d.bins[:0]
		b.decoded.Go(func() { // some lines at a time: another goroutine may have had a CPU later
			const some = 32
			for end := int(taken.Add(some)); end-some < len(b.lines); end = int(taken.Add(some)) {
				for i := end - some; i < min(end, len(b.lines)); i++ {
					begin := len(d.bins)
					if !r.decode(d, b.lines[i], &b.trials[i]) {
						b.trials[i], d.bins = Trial{}, d.bins[:begin]
					}
					b.bins[i] = d.bins[begin:]
				}
			}
		})
	}
}

// decodeTimes decodes what [ReadTimes] takes. The decoder passes over all other keys.
func decodeTimes(_ *decoder, line []byte, t *Trial) (ok bool) {
	if !bytes.HasPrefix(line, []byte(trialBegins)) || bytes.IndexByte(line, 0) >= 0 {
		return false
	}
	var v struct {
		Cell     string          `json:"cell"`
		Round    int             `json:"round"`
		Position int             `json:"position"`
		Start    time.Duration   `json:"start_ns"`
		Records  int64           `json:"records"`
		Elapsed  time.Duration   `json:"elapsed_ns"`
		Write    time.Duration   `json:"write_ns"`
		Flush    time.Duration   `json:"flush_ns"`
		Sync     time.Duration   `json:"sync_ns"`
		Close    time.Duration   `json:"close_ns"`
		Turns    []time.Duration `json:"turns_ns"`
		User     time.Duration   `json:"user_cpu_ns"`
		System   time.Duration   `json:"system_cpu_ns"`
		Latency  struct {
			P50 time.Duration `json:"p50_ns"`
		} `json:"latency"`
		Service *Latency `json:"service"`
	}
	if json.Unmarshal(line, &v) != nil || v.Records <= 0 || v.Elapsed <= 0 ||
		slices.Min(append(v.Turns, v.Start, v.Write, v.Flush, v.Sync, v.Close, v.User, v.System, v.Latency.P50)) < 0 {
		return false // Read's own check says what is wrong
	}
	*t = Trial{Cell: v.Cell, Round: v.Round, Position: v.Position, StartNs: v.Start, Measurement: Measurement{
		Records: v.Records, Elapsed: v.Elapsed, Write: v.Write, Flush: v.Flush, Sync: v.Sync, Close: v.Close,
		Turns: v.Turns, Usage: Usage{User: v.User, System: v.System}, Latency: Latency{P50: v.Latency.P50}, Service: v.Service,
	}}
	return true
}

// take adds one line to the run.
func (r *reader) take(line []byte, first bool) error {
	var k struct {
		Kind kind `json:"kind"`
	}
	err := json.Unmarshal(line, &k)
	switch {
	case first && isCutHeader(line):
		return ErrNoHeader
	case first && (err != nil || k.Kind != kindHeader):
		return ErrNotResults
	case bytes.IndexByte(line, 0) >= 0:
		return ErrNUL
	case err != nil:
		return err
	}
	switch k.Kind {
	case kindHeader:
		err := r.run.takeHeader(line, first)
		for _, c := range r.run.Header.Cells {
			r.cells[c.Name] = c.Name
		}
		return err
	case kindResume:
		return r.run.takeResumption(line)
	case kindTrial:
		return r.takeTrial(line)
	case kindControl:
		var c Control
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		if c.Loop <= 0 || c.Write <= 0 || c.Fdatasync <= 0 {
			return fmt.Errorf("the control of round %d has a time that is not positive", c.Round)
		}
		r.run.Controls = append(r.run.Controls, c)
	case kindEnd:
		r.run.End = new(End)
		return json.Unmarshal(line, r.run.End)
	}
	return nil
}

// isCutHeader reports whether a first line is the beginning of a header, with or
// without NUL bytes in place of the rest.
func isCutHeader(line []byte) bool {
	const begins = `{"kind":"header",`
	rest := bytes.TrimRight(line, "\x00")
	if len(line) == 0 || bytes.HasSuffix(rest, []byte("\n")) {
		return false
	}
	n := min(len(rest), len(begins))
	return string(rest[:n]) == begins[:n]
}

func (r *Run) takeHeader(line []byte, first bool) error {
	if !first {
		return errors.New("a second header: two files were joined")
	}
	var v struct {
		SchemaVersion int `json:"schema_version"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	if v.SchemaVersion > SchemaVersion {
		return fmt.Errorf("%w: schema_version %d, and this one reads up to %d", ErrNewer, v.SchemaVersion, SchemaVersion)
	}
	if v.SchemaVersion < 1 {
		return ErrNotResults
	}
	if err := json.Unmarshal(line, &r.Header); err != nil {
		return err
	}
	if key, n := negative(reflect.ValueOf(r.Header.Plan)); key != "" {
		return fmt.Errorf("%s %d of the plan is negative", key, n)
	}
	for _, c := range r.Header.Cells {
		if key, n := negative(reflect.ValueOf(c)); key != "" {
			return fmt.Errorf("%s %d of the cell %q is negative", key, n, c.Name)
		}
		if c.Rate < 0 {
			return fmt.Errorf("rate_per_s %v of the cell %q is negative", c.Rate, c.Name)
		}
	}
	return nil
}

// negative finds an integer below zero: nothing that is counted or timed is. It returns its
// key, or nothing if there is none. What the machine did meanwhile is another's count.
func negative(v reflect.Value) (key string, n int64) {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}
		switch tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); {
		case f.CanInt() && f.Int() < 0:
			return tag, f.Int()
		case f.Kind() == reflect.Struct && f.Type().PkgPath() == v.Type().PkgPath():
			if key, n := negative(f); key != "" {
				return key, n
			}
		}
	}
	return "", 0
}

// takeResumption adds a resumption. The end before it does not count any more.
func (r *Run) takeResumption(line []byte) error {
	var v Resumption
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	r.Resumed, r.End = append(r.Resumed, v), nil
	return nil
}

func (r *reader) takeTrial(line []byte) error {
	var t Trial
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	if _, known := r.cells[t.Cell]; known {
		if err := t.check(); err != nil {
			return err
		}
	}
	return r.append(&t)
}

// check refuses what no trial can have.
func (t Trial) check() error {
	if t.Records <= 0 || t.Elapsed <= 0 {
		return fmt.Errorf("a trial of %d records in %d ns is none", t.Records, int64(t.Elapsed))
	}
	if key, n := negative(reflect.ValueOf(t)); key != "" {
		return fmt.Errorf("%s %d of round %d of %s is negative", key, n, t.Round, t.Cell)
	}
	for _, l := range t.latencies() {
		if _, err := l.histogram(); err != nil {
			return fmt.Errorf("the histogram of round %d of %s can't be decoded: %w", t.Round, t.Cell, err)
		}
	}
	return nil
}

// append adds a trial that is right in itself.
func (r *reader) append(t *Trial) error {
	name, known := r.cells[t.Cell]
	if !known {
		return fmt.Errorf("the cell %q is not in the header", t.Cell)
	}
	if len(r.run.Trials) == r.most {
		return fmt.Errorf("%w: the file has more than %d", ErrTooMany, r.most)
	}
	t.Cell = name // one text in memory
	r.run.Trials = append(r.run.Trials, t)
	return nil
}

// merge adds the bins of a round's trials to the sums, and reports whether there were any.
// Held has those of all their latencies, one after the other. The bins of a round that is not whole are in no figure.
func merge(sums map[sumOf]*sum, trials []*Trial, held []bin, whole bool) (any bool) {
	for _, t := range trials {
		for kind, l := range t.latencies() {
			if l == nil || l.bins == 0 || !whole {
				continue
			}
			of := sumOf{t.Cell, kind}
			if sums[of] == nil {
				sums[of] = &sum{}
			}
			l.sum = sums[of]
			l.sum.add(held[:l.bins])
			held, any = held[l.bins:], true
		}
	}
	return any
}
