package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/holdfast-go/holdfast/internal/workdir"
)

// A kind is the first key of every line. A reader skips kinds that it does not know.
type kind string

const (
	kindHeader  kind = "header"
	kindResume  kind = "resume"
	kindTrial   kind = "trial"
	kindControl kind = "control"
	kindRest    kind = "rest"
	kindEnd     kind = "end"
)

// A File is a results file while it is written. Every method writes its complete line
// to the kernel before it returns, so a killed program leaves every result so far. After an error the
// file ends with its last complete line, and the caller may go on writing. It is for one goroutine.
type File struct {
	file *os.File
	size int64 // of the complete lines
}

// Create makes the file at path and writes its header. If the file exists it stays as it
// is, and the error is fs.ErrExist.
func Create(path string, h Header) (*File, error) {
	dir, err := os.OpenRoot(filepath.Dir(path)) // by this handle an error removes the right file, even if the path then leads elsewhere
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

// ErrChanged means that a file holds another run than when it was read.
var ErrChanged = errors.New("has another run now than when it was read")

// Resume opens the file at path, which has an unfinished run, cuts off an incomplete last line, and
// appends r. It returns the run as it was before. It does not change a file that is no results file, or
// is of another version, or for which same returns false. A nil same accepts every run.
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
		return run, fmt.Errorf("%w: schema_version %d, and only runs of version %d can be continued", ErrOlder, run.Header.SchemaVersion, SchemaVersion)
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

type rest struct {
	Kind kind `json:"kind"`
	Rest
}

type end struct {
	Kind kind `json:"kind"`
	End
}

// Trial appends a trial's line.
func (f *File) Trial(t Trial) error { return f.line(trial{kindTrial, t}) }

// Control appends the line of a control.
func (f *File) Control(c Control) error { return f.line(control{kindControl, c}) }

// Rest appends the line of cells that rest from now on.
func (f *File) Rest(r Rest) error { return f.line(rest{kindRest, r}) }

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

// Write writes a run as [Read] reads it. A torn line is not written again.
func Write(w io.Writer, run Run) error {
	e := json.NewEncoder(w)
	if err := e.Encode(header{kindHeader, run.Header}); err != nil {
		return err
	}
	resumed, controls, rests := run.Resumed, run.Controls, run.Rests
	for i, t := range run.Trials {
		// Every process starts with a round 0.
		if i > 0 && t.Round == 0 && t.Position == 1 && len(resumed) > 0 {
			if err := e.Encode(resumption{kindResume, resumed[0]}); err != nil {
				return err
			}
			resumed = resumed[1:]
		}
		for ; len(rests) > 0 && rests[0].Round < t.Round; rests = rests[1:] {
			if err := e.Encode(rest{kindRest, rests[0]}); err != nil {
				return err
			}
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
	for _, r := range rests {
		if err := e.Encode(rest{kindRest, r}); err != nil {
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

// A FormatError names the wrong line of a results file, and the reason.
type FormatError struct {
	Line int // from 1
	Err  error
}

func (e *FormatError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *FormatError) Unwrap() error { return e.Err }

// The reasons to refuse a file.
var (
	ErrNotResults = errors.New("not a results file of holdfast: the first line is not a header")
	ErrNoHeader   = errors.New("ends within its first line, so nothing was measured yet")
	ErrNUL        = errors.New("holds NUL bytes, as a power cut or a broken disk leaves them")
	ErrNewer      = errors.New("was written by a newer holdfast")
	ErrOlder      = errors.New("was written by an older holdfast") // returned by Resume only
	ErrTooMany    = errors.New("too many trials for one report")
)

// MostTrials is the largest number of trials in a report, of one file or of all files that are compared:
// README's run has 184. Reading 25,000 trials took 2.8 s of CPU time for a run like README's, and 8.6 s for
// open loops with three distributions of 10,000 Writes each, and at most 0.55 GiB (two CPUs, a busy machine).
const MostTrials = 25_000

// Read reads a results file. An incomplete last line, or a missing end line, is no error: the Run
// reports it. For any other wrong line the error is a *FormatError. It refuses more than MostTrials
// trials.
//
// NUL bytes at the end are an incomplete line. A power cut leaves them in a file that had grown before
// its bytes were on the disk.
func Read(r io.Reader) (Run, error) { return ReadMost(r, MostTrials) }

// ReadMost is Read with a lower limit of trials.
func ReadMost(r io.Reader, most int) (Run, error) {
	return (&reader{most: most, cells: map[string]string{}}).read(r)
}

// ReadTimes is Read for many files, when only the times are needed. It does not decode histograms, so a
// damaged one is no error, and keeps only Service's.
func ReadTimes(r io.Reader) (Run, error) {
	return (&reader{most: MostTrials, timesOnly: true, cells: map[string]string{}}).read(r)
}

// A reader reads one results file.
type reader struct {
	most      int // trials
	timesOnly bool

	run   Run
	cells map[string]string // their names
}

func (r *reader) read(from io.Reader) (Run, error) {
	text := bufio.NewReaderSize(from, 64<<10)
	for number := 1; ; number++ {
		line, err := text.ReadBytes('\n')
		switch {
		case err != nil && err != io.EOF:
			return Run{}, err
		case number > 1 && len(line) == 0:
			return r.run, nil
		case number > 1 && err == io.EOF:
			r.run.Torn, r.run.TornAt = true, number
			return r.run, nil
		}
		if err := r.take(line, number == 1); err != nil {
			return Run{}, &FormatError{Line: number, Err: err}
		}
	}
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
		if c.Write <= 0 || c.Fdatasync <= 0 {
			return fmt.Errorf("the control of round %d has a time that is not positive", c.Round)
		}
		r.run.Controls = append(r.run.Controls, c)
	case kindRest:
		var rest Rest
		if err := json.Unmarshal(line, &rest); err != nil {
			return err
		}
		if rest.Round <= 0 {
			return fmt.Errorf("cells rest after round %d", rest.Round)
		}
		for i, c := range rest.Cells {
			name, known := r.cells[c]
			if !known {
				return fmt.Errorf("the cell %q is not in the header", c)
			}
			rest.Cells[i] = name
		}
		r.run.Rests = append(r.run.Rests, rest)
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
		return fmt.Errorf("%w: schema_version %d, and this version of holdfast reads up to %d", ErrNewer, v.SchemaVersion, SchemaVersion)
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

// negative returns the key of an integer below zero, or an empty text if there is none: no count and no
// time is negative. It skips the machine's activity, whose counts belong to another package.
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

// takeResumption adds a resumption, and removes the end that stood before it.
func (r *Run) takeResumption(line []byte) error {
	var v Resumption
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	r.Resumed, r.End = append(r.Resumed, v), nil
	return nil
}

func (r *reader) takeTrial(line []byte) error {
	t := &Trial{}
	if err := json.Unmarshal(line, t); err != nil {
		return err
	}
	name, known := r.cells[t.Cell]
	if !known {
		return fmt.Errorf("the cell %q is not in the header", t.Cell)
	}
	t.Cell = name // so that all trials share one string
	if r.timesOnly {
		t.Latency.Histogram, t.Replayed = "", nil
	}
	if err := t.check(!r.timesOnly); err != nil {
		return err
	}
	if len(r.run.Trials) >= r.most {
		return fmt.Errorf("%w: the file has more than %d", ErrTooMany, r.most)
	}
	r.run.Trials = append(r.run.Trials, t)
	return nil
}

// check refuses values that no trial can have.
func (t *Trial) check(histograms bool) error {
	if t.Records <= 0 || t.Elapsed <= 0 {
		return fmt.Errorf("a trial of %d records in %d ns is not possible", t.Records, int64(t.Elapsed))
	}
	if key, n := negative(reflect.ValueOf(*t)); key != "" {
		return fmt.Errorf("%s %d of round %d of %s is negative", key, n, t.Round, t.Cell)
	}
	if !histograms {
		return nil
	}
	for _, l := range t.latencies() {
		if _, err := l.histogram(); err != nil {
			return fmt.Errorf("the histogram of round %d of %s can't be decoded: %w", t.Round, t.Cell, err)
		}
	}
	return nil
}
