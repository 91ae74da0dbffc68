package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/figure"
	"github.com/holdfast-go/holdfast/internal/panel"
	"github.com/holdfast-go/holdfast/internal/report"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/timing"
)

const csvEnding = ".csv"

func isCSV(name string) bool { return strings.EqualFold(filepath.Ext(name), csvEnding) }

// drawFigures draws the panels that there are rows for in the inputs into a folder,
// and a page of them all. Either all files are made or none. The panels without rows
// are told on stderr.
func drawFigures(stdin io.Reader, stdout, stderr io.Writer, folder string, inputs []string) error {
	rows, err := readTimings(stdin, inputs)
	if err != nil {
		return err
	}
	panels, left := panel.All(rows)
	if len(panels) == 0 {
		return &refusal{exitCannot, fmt.Errorf("%s: there is nothing to draw", strings.Join(inputs, ", ")), "give results of holdfast bench copy, or tables of times as CSV"}
	}
	files, err := render(inputs, panels)
	if err != nil {
		return err
	}
	if err := writeFolder("--figures", folder, files); err != nil {
		return err
	}
	tellOmitted(stderr, left)
	_, err = fmt.Fprintf(stdout, "%s shows %s\n", filepath.Join(folder, pageName), countText(int64(len(panels)), "panel"))
	return err
}

// readTimings reads the rows of all inputs, which must not have the same of one.
func readTimings(stdin io.Reader, inputs []string) (rows []timing.Row, err error) {
	type place struct {
		fileSystem string
		size       int64
		form       timing.Form
		buffer     int
	}
	from := map[place]string{}
	for _, name := range inputs {
		read := readCSV
		if !isCSV(name) {
			read = func(name string) ([]timing.Row, error) { return readCopies(name, stdin) }
		}
		of, err := read(name)
		if err != nil {
			return nil, err
		}
		for _, r := range of {
			at := place{r.FileSystem, r.FileSize, r.Form, r.Buffer}
			switch other, ok := from[at]; {
			case ok && other == name:
				return nil, misuse("give each file once, and each point", "%s has two times of a buffer of %dB on %s", name, r.Buffer, r.FileSystem)
			case ok:
				return nil, misuse("draw them into folders of their own, or rename a file to what its points shall be called",
					"%s and %s both have the time of a buffer of %dB on %s", other, name, r.Buffer, r.FileSystem)
			}
			from[at] = name
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

// readCopies reads the rows of a run of the study copy.
func readCopies(name string, stdin io.Reader) ([]timing.Row, error) {
	run, err := readResults(name, stdin)
	if err != nil {
		return nil, err
	}
	if run.Header.Study != "copy" {
		what := "a run without a study"
		if isStudy(run.Header) {
			what = "a run of the study " + run.Header.Study
		}
		return nil, misuse("make one with holdfast bench copy -o results.jsonl", "%s: --figures draws the study copy, and this is %s", name, what)
	}
	rows := study.Timings(run)
	if len(rows) == 0 {
		return nil, cannotReport(name, figure.ErrNoRound)
	}
	return rows, nil
}

// readCSV reads a table of times, and takes from the file's name what the table does
// not say; see docs/figures.md.
func readCSV(name string) ([]timing.Row, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, misuse("tables are made by holdfast bench copy", "there is no file %s", name)
	}
	if err != nil {
		return nil, misuse("choose a file that you may read", "%s: %w", name, cause(err))
	}
	defer f.Close()
	rows, err := timing.ReadCSV(f, name)
	if err != nil {
		return nil, misuse("docs/figures.md shows the tables that are read", "%w", err)
	}
	fileSystem, form := ofName(name)
	for i := range rows {
		if rows[i].FileSystem == "" {
			rows[i].FileSystem = fileSystem
		}
		if rows[i].Form == timing.Copy {
			rows[i].Form = form
		}
	}
	return rows, nil
}

// ofName tells what a file such as ext4_results.csv has the times of. What is before
// the first underscore is the file system.
func ofName(name string) (fileSystem string, form timing.Form) {
	name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	fileSystem, rest, _ := strings.Cut(name, "_")
	switch {
	case strings.Contains(rest, "O_SYNC"):
		return fileSystem, timing.Synced
	case strings.Contains(rest, "write"):
		return fileSystem, timing.Write
	}
	return fileSystem, timing.Copy
}

const pageName = "index.html"

// A rendered file is ready to be written.
type rendered struct {
	name string
	data []byte
}

func render(inputs []string, panels []panel.Panel) (files []rendered, err error) {
	for _, p := range panels {
		svg, err := p.SVG()
		if err != nil {
			return nil, err
		}
		png, err := p.PNG()
		if err != nil {
			return nil, err
		}
		files = append(files, rendered{p.Name + ".svg", svg}, rendered{p.Name + ".png", png})
	}
	var from []string
	for _, name := range inputs {
		from = append(from, filepath.Base(name))
	}
	page, err := panel.Page(from, panels)
	return append(files, rendered{pageName, page}), err
}

// writeFolder makes the files new in the folder that a flag names, and the folder if
// it is not there. Where that fails, it removes what it has made.
func writeFolder(flag, folder string, files []rendered) (err error) {
	made, err := makeFolder(flag, folder)
	if err != nil {
		return err
	}
	var written []string
	defer func() {
		if err != nil {
			err = errors.Join(err, removeAll(append(made, written...)))
		}
	}()
	for _, f := range files { // before any is written: the pictures of a folder belong together
		if _, err := os.Lstat(filepath.Join(folder, f.name)); err == nil {
			return misuse("choose another folder, or remove it first", "%s %s: %s exists in it, and nothing is overwritten", flag, folder, f.name)
		}
	}
	for _, f := range files {
		path := filepath.Join(folder, f.name)
		err := writeNew(flag, path, func(w io.Writer) error {
			_, err := w.Write(f.data)
			return err
		})
		if err != nil {
			return err
		}
		written = append(written, path)
	}
	return nil
}

// makeFolder makes a folder and those above it, and returns which were made, the
// outermost first.
func makeFolder(flag, folder string) (made []string, err error) {
	for dir := filepath.Clean(folder); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		made = append([]string{dir}, made...)
	}
	if err := os.MkdirAll(folder, 0o777); errors.Is(err, syscall.ENOTDIR) {
		return nil, misuse("choose a folder, or a name that is not taken", "%s %s: there is a file of that name, or above it", flag, folder)
	} else if err != nil {
		return nil, misuse("choose a folder that you may write to", "%s %s: %w", flag, folder, cause(err))
	}
	return made, nil
}

// removeAll removes files and empty folders, the last first.
func removeAll(paths []string) (err error) {
	for _, path := range slices.Backward(paths) {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// tellOmitted names the panels that there are no rows for, by the reason.
func tellOmitted(stderr io.Writer, left []panel.Omitted) {
	var reasons []string
	names := map[string][]string{}
	for _, l := range left {
		if names[l.Why] == nil {
			reasons = append(reasons, l.Why)
		}
		names[l.Why] = append(names[l.Why], l.Name)
	}
	for _, why := range reasons {
		line := fmt.Sprintf("holdfast: %s not drawn: %s (%s)", countText(int64(len(names[why])), "panel"), why, strings.Join(names[why], ", "))
		_, _ = io.WriteString(stderr, report.Fold(line))
	}
}
