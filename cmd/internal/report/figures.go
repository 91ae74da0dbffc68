package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	copystudy "github.com/holdfast-go/holdfast/cmd/internal/lab/copying"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/plot"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/costloss"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

const csvEnding = ".csv"

func isCSV(name string) bool { return strings.EqualFold(filepath.Ext(name), csvEnding) }

// drawFigures draws a run of policies, if that is the input, or the panels for which the inputs have
// rows, into a directory. Panels have a page of them all. It makes all files or none. It names the
// panels without rows on stderr.
func drawFigures(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, dir string, inputs []string) error {
	var only *result.Run
	if len(inputs) == 1 && !isCSV(inputs[0]) && !isPublished(inputs[0]) {
		run, err := cli.ReadResults(ctx, inputs[0], stdin)
		if err != nil {
			return err
		}
		if only = &run; !cli.IsStudy(run.Header) {
			return drawCostLoss(stdout, dir, inputs[0], run)
		}
	}
	rows, err := readTimings(ctx, stdin, inputs, only)
	if err != nil {
		return err
	}
	panels, left := plot.All(rows)
	if len(panels) == 0 {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s: there is nothing to draw", strings.Join(inputs, ", ")), Hint: "give results of holdfast bench copy, or tables of times as CSV"}
	}
	if err := writeDir("--figures", dir, render(inputs, panels)); err != nil {
		return err
	}
	var reasons []string
	names := map[string][]string{}
	for _, l := range left {
		if names[l.Why] == nil {
			reasons = append(reasons, l.Why)
		}
		names[l.Why] = append(names[l.Why], l.Name)
	}
	for _, why := range reasons {
		line := fmt.Sprintf("holdfast: %s not drawn: %s (%s)", cli.CountText(int64(len(names[why])), "panel"), why, strings.Join(names[why], ", "))
		_, _ = io.WriteString(stderr, report.Fold(line, cli.Columns(stderr)))
	}
	_, err = fmt.Fprintf(stdout, "%s shows %s\n", filepath.Join(dir, pageName), cli.CountText(int64(len(panels)), "panel"))
	return err
}

// drawCostLoss draws what policies cost against what a power cut takes, for each load.
func drawCostLoss(stdout io.Writer, dir, name string, run result.Run) error {
	pictures, err := costloss.All(run)
	if err != nil {
		return cli.CannotReport(name, err)
	}
	if len(pictures) == 0 {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s: there is nothing to draw", name), Hint: "give results of holdfast bench without --rate"}
	}
	var files []rendered
	for _, p := range pictures {
		files = append(files, rendered{p.Name + ".svg", []byte(p.Plot.Document())})
	}
	if err := writeDir("--figures", dir, files); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s has %s of cost against loss\n", dir, cli.CountText(int64(len(files)), "picture"))
	return err
}

func isPublished(name string) bool {
	_, err := os.Lstat(name)
	return name == published && errors.Is(err, fs.ErrNotExist)
}

// published names, where no file has that name, the figures of the document, which holdfast has in it.
const published = "published"

// readTimings reads the rows of all inputs, and refuses two rows of the same point. An only input may
// have been read before.
func readTimings(ctx context.Context, stdin io.Reader, inputs []string, only *result.Run) (rows []timing.Row, err error) {
	type place struct {
		fileSystem string
		size       int64
		form       timing.Form
		buffer     int
	}
	from := map[place]string{}
	for _, name := range inputs {
		read := readCSV
		if isPublished(name) {
			read = func(string) ([]timing.Row, error) {
				return slices.Concat(timing.PublishedCopies(), timing.PublishedSynced(), timing.PublishedSizes(), timing.PublishedWrites()), nil
			}
		} else if !isCSV(name) {
			read = func(name string) ([]timing.Row, error) { return readCopies(ctx, name, stdin, only) }
		}
		of, err := read(name)
		if err != nil {
			return nil, err
		}
		for _, r := range of {
			at := place{r.FileSystem, r.FileSize, r.Form, r.Buffer}
			switch other, ok := from[at]; {
			case ok && other == name:
				return nil, cli.Misuse("give each file once, and each point", "%s has two times of a buffer of %dB on %s", name, r.Buffer, r.FileSystem)
			case ok:
				return nil, cli.Misuse("draw them into directories of their own, or rename a file to what its points shall be called",
					"%s and %s both have the time of a buffer of %dB on %s", other, name, r.Buffer, r.FileSystem)
			}
			from[at] = name
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

// readCopies reads the rows of a run of the study copy.
func readCopies(ctx context.Context, name string, stdin io.Reader, only *result.Run) ([]timing.Row, error) {
	var run result.Run
	if only != nil {
		run = *only
	} else if read, err := cli.ReadResults(ctx, name, stdin); err != nil {
		return nil, err
	} else {
		run = read
	}
	if run.Header.Study != "copy" {
		what := "a run without a study"
		if cli.IsStudy(run.Header) {
			what = "a run of the study " + run.Header.Study
		}
		return nil, cli.Misuse("make one with holdfast bench copy -o results.jsonl; a run without a study is drawn alone", "%s: --figures draws the study copy, and this is %s", name, what)
	}
	rows := copystudy.Timings(run)
	if len(rows) == 0 {
		return nil, cli.CannotReport(name, figure.ErrNoRound)
	}
	return rows, nil
}

// readCSV reads a table of times, and takes from the file's name what the table does
// not say; see docs/figures.md.
func readCSV(name string) ([]timing.Row, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Misuse("tables are made by holdfast bench copy", "there is no file %s", name)
	}
	if err != nil {
		return nil, cli.Misuse("choose a file that you may read", "%s: %w", name, cli.Cause(err))
	}
	defer f.Close()
	rows, err := timing.ReadCSV(f, name)
	if err != nil {
		return nil, cli.Misuse("docs/figures.md shows the tables that are read", "%w", err)
	}
	fileSystem, form := ofName(name)
	for i := range rows {
		rows[i].Predicted = rows[i].Predicted || timing.IsPredictedName(name)
		if rows[i].FileSystem == "" {
			rows[i].FileSystem = fileSystem
		}
		if rows[i].Form == timing.Copy {
			rows[i].Form = form
		}
	}
	return rows, nil
}

// ofName returns what the times of a file such as ext4_results.csv are of. What is before
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

func render(inputs []string, panels []plot.Panel) (files []rendered) {
	for _, p := range panels {
		files = append(files, rendered{p.Name + ".svg", []byte(p.SVG())})
	}
	for _, p := range plot.Pictures(panels) {
		files = append(files, rendered{p.Name, []byte(p.SVG())})
	}
	var from []string
	for _, name := range inputs {
		from = append(from, filepath.Base(name))
	}
	return append(files, rendered{pageName, plot.Page(from, panels)})
}

// writeDir makes the files in the directory that a flag names, and the directory if it does
// not exist. If that fails, it removes what it has made.
func writeDir(flag, dir string, files []rendered) (err error) {
	held, err := cli.HoldDir(dir, 0o777)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return cli.Misuse("choose a directory, or a name that is not taken", "%s %s: there is a file of that name, or above it", flag, dir)
	case err != nil:
		return cli.Misuse("choose a directory that you may write to", "%s %s: %w", flag, dir, cli.Cause(err))
	}
	written := 0
	defer func() {
		if err == nil {
			err = held.Close()
			return
		}
		for _, f := range files[:written] {
			err = errors.Join(err, held.Remove(f.name))
		}
		err = errors.Join(err, held.Undo())
	}()
	for _, f := range files { // before any is written: the pictures of a directory belong together
		if _, err := held.Lstat(f.name); err == nil {
			return cli.Misuse("choose another directory, or remove it first", "%s %s: %s exists in it, and nothing is overwritten", flag, dir, f.name)
		}
	}
	for _, f := range files {
		err := cli.WriteIn(held.Root, f.name, flag, filepath.Join(dir, f.name), func(w io.Writer) error {
			_, err := w.Write(f.data)
			return err
		})
		if err != nil {
			return err
		}
		written++
	}
	return nil
}
