package study

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

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/copying"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/plot"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

const csvEnding = ".csv"

func isCSV(name string) bool { return strings.EqualFold(filepath.Ext(name), csvEnding) }

// newFigures is the command that draws the pictures of the study copy.
func newFigures() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use:   "figures results.jsonl... -o directory",
		Short: "draw the published pictures of the study copy, as SVG",
		Long: `Figures draws the published pictures of the study copy as SVG into a directory, with
a page of all of them. It draws from results of that study and from CSV files such
as ext4_results.csv, several at once; the name published means the figures of the
document itself. docs/figures.md has more.`,
		Example: `  holdfast study figures results.jsonl -o pictures
  holdfast study figures published -o published-pictures`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || dir == "" {
				return cli.Misuse("for instance: holdfast study figures results.jsonl -o pictures", "figures needs results or tables of times, and -o with a directory")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return drawFigures(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), dir, args)
		},
	}
	cmd.Flags().VarP(cli.Target("dir", &dir, cli.Given), "output", "o", "draw into this directory")
	return cmd
}

// drawFigures draws the panels for which the inputs have rows into a directory, with a page of them all. It
// makes all files or none. It names the panels without rows on stderr.
func drawFigures(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, dir string, inputs []string) error {
	rows, err := readTimings(ctx, stdin, inputs)
	if err != nil {
		return err
	}
	panels, left := plot.All(rows)
	if len(panels) == 0 {
		return &cli.Refusal{Code: cli.ExitCannot, Err: fmt.Errorf("%s: there is nothing to draw", strings.Join(inputs, ", ")), Hint: "use results of holdfast study copy, or tables of times as CSV"}
	}
	if err := cli.WriteDir("-o", dir, render(inputs, panels)); err != nil {
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

func isPublished(name string) bool {
	_, err := os.Lstat(name)
	return name == published && errors.Is(err, fs.ErrNotExist)
}

// published names, where no file has that name, the figures of the document, which holdfast has in it.
const published = "published"

// readTimings reads the rows of all inputs, and refuses two rows of the same point.
func readTimings(ctx context.Context, stdin io.Reader, inputs []string) (rows []timing.Row, err error) {
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
			read = func(name string) ([]timing.Row, error) { return readCopies(ctx, name, stdin) }
		}
		of, err := read(name)
		if err != nil {
			return nil, err
		}
		for _, r := range of {
			at := place{r.FileSystem, r.FileSize, r.Form, r.Buffer}
			switch other, ok := from[at]; {
			case ok && other == name:
				return nil, cli.Misuse("name each file once; a file may have only one time for a buffer size", "%s has two times for a buffer of %dB on %s", name, r.Buffer, r.FileSystem)
			case ok:
				return nil, cli.Misuse("draw them into different directories, or rename one of the files: its points get the file's name",
					"%s and %s both have a time for a buffer of %dB on %s", other, name, r.Buffer, r.FileSystem)
			}
			from[at] = name
		}
		rows = append(rows, of...)
	}
	return rows, nil
}

// readCopies reads the rows of a run of the study copy.
func readCopies(ctx context.Context, name string, stdin io.Reader) ([]timing.Row, error) {
	run, err := cli.ReadResults(ctx, name, stdin)
	if err != nil {
		return nil, err
	}
	if run.Header.Study != "copy" {
		what := "a run without a study"
		if study.Is(run.Header) {
			what = "a run of the study " + run.Header.Study
		}
		return nil, cli.Misuse("make one with holdfast study copy -o results.jsonl", "%s: the pictures need a run of the study copy, and this is %s", name, what)
	}
	rows := copying.Timings(run)
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
		return nil, cli.Misuse("tables are made by holdfast study times", "there is no file %s", name)
	}
	if err != nil {
		return nil, cli.Misuse("choose a file that you may read", "%s: %w", name, cli.Cause(err))
	}
	defer f.Close()
	rows, err := timing.ReadCSV(f, name)
	if err != nil {
		return nil, cli.Misuse("docs/figures.md describes the format of the tables", "%w", err)
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

// ofName returns what the times of a file such as ext4_results.csv are of. The text before the
// first underscore is the file system.
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

func render(inputs []string, panels []plot.Panel) (files []cli.File) {
	for _, p := range panels {
		files = append(files, cli.File{Name: p.Name + ".svg", Data: []byte(p.SVG())})
	}
	for _, p := range plot.Pictures(panels) {
		files = append(files, cli.File{Name: p.Name, Data: []byte(p.SVG())})
	}
	var from []string
	for _, name := range inputs {
		from = append(from, filepath.Base(name))
	}
	return append(files, cli.File{Name: pageName, Data: plot.Page(from, panels)})
}
