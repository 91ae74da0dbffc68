package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// kind is the first key of every line; a reader passes over kinds that it does
// not know.
type kind string

const (
	kindHeader kind = "header"
	kindTrial  kind = "trial"
	kindEnd    kind = "end"
)

// A File is a results file while it is written. Every line is handed to the
// kernel whole before its method returns, so a killed program leaves all that
// was measured. It is for one goroutine.
type File struct {
	file *os.File
}

// Create makes the file at path and writes its header. An existing file is left
// alone: the error is then fs.ErrExist.
func Create(path string, h Header) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	file := &File{file: f}
	if err := file.line(header{kindHeader, h}); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return file, nil
}

type header struct {
	Kind kind `json:"kind"`
	Header
}

type trial struct {
	Kind kind `json:"kind"`
	Trial
}

type end struct {
	Kind kind `json:"kind"`
	End
}

// Trial appends a trial's line.
func (f *File) Trial(t Trial) error { return f.line(trial{kindTrial, t}) }

// Close appends the end line, syncs and closes the file.
func (f *File) Close(e End) error {
	return errors.Join(f.line(end{kindEnd, e}), f.file.Sync(), f.file.Close())
}

func (f *File) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	_, err = f.file.Write(append(text, '\n'))
	return err
}

// A FormatError says which line of a results file can't be used, and why.
type FormatError struct {
	Line int // from 1
	Err  error
}

func (e *FormatError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *FormatError) Unwrap() error { return e.Err }

// The reasons for which a file is refused.
var (
	ErrNotResults = errors.New("is not a results file of holdfast: its first line is not a header")
	ErrNewer      = errors.New("was written by a newer holdfast")
)

// Read reads a results file. A last line that is not whole, or a missing end
// line, is no error: the Run says so. Any other line that is not right is a
// *FormatError.
func Read(r io.Reader) (Run, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Run{}, err
	}
	var run Run
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		if i > 0 && !bytes.HasSuffix(line, []byte("\n")) {
			run.Torn = true
			break
		}
		if err := run.take(line, i == 0); err != nil {
			return Run{}, &FormatError{Line: i + 1, Err: err}
		}
	}
	if run.Header.SchemaVersion == 0 {
		return Run{}, &FormatError{Line: 1, Err: ErrNotResults}
	}
	return run, nil
}

// take adds one line to the run.
func (r *Run) take(line []byte, first bool) error {
	var k struct {
		Kind kind `json:"kind"`
	}
	err := json.Unmarshal(line, &k)
	if first && (err != nil || k.Kind != kindHeader) {
		return ErrNotResults
	}
	if err != nil {
		return err
	}
	switch k.Kind {
	case kindHeader:
		return r.takeHeader(line, first)
	case kindTrial:
		return r.takeTrial(line)
	case kindEnd:
		r.End = new(End)
		return json.Unmarshal(line, r.End)
	}
	return nil
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
	return json.Unmarshal(line, &r.Header)
}

func (r *Run) takeTrial(line []byte) error {
	var t Trial
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	for _, c := range r.Header.Cells {
		if c.Name == t.Cell {
			return r.append(t)
		}
	}
	return fmt.Errorf("the cell %q is not in the header", t.Cell)
}

func (r *Run) append(t Trial) error {
	if t.Records <= 0 || t.Elapsed <= 0 {
		return fmt.Errorf("a trial of %d records in %d ns is none", t.Records, int64(t.Elapsed))
	}
	r.Trials = append(r.Trials, t)
	return nil
}
