package study

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/copying"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A timingFile is one of the files.
type timingFile struct {
	name  string
	write func(io.Writer) error
}

// newTimes is the command that writes the times of the study copy as they were published.
func newTimes() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use:   "times results.jsonl -o directory",
		Short: "write the times of the study copy as the published tables",
		Long: `Times writes the times of a run of the study copy into a new directory, in the format
of the published tables: ext4_results.csv and so on.`,
		Example: `  holdfast study times results.jsonl -o tables
  gunzip -c results.jsonl.gz | holdfast study times - -o tables`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || dir == "" {
				return cli.Misuse("for instance: holdfast study times results.jsonl -o tables", "times needs one results file, and -o with a new directory")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := cli.ReadResults(cmd.Context(), args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			return writeTimings(dir, run)
		},
	}
	cmd.Flags().VarP(cli.Target("dir", &dir, cli.Given), "output", "o", "write into this new directory")
	return cmd
}

// writeTimings writes the times of a run of the study copy in the forms in which the
// experiment was published, into a new directory.
func writeTimings(dir string, run result.Run) error {
	rows := copying.Timings(run)
	if len(rows) == 0 {
		return cli.Misuse("use results of holdfast study copy with a complete round", "these results have no times by buffer size")
	}
	if _, err := os.Lstat(dir); err == nil {
		return cli.Misuse("choose a directory that does not exist yet", "-o %s: it exists, and nothing is overwritten", dir)
	}
	var files []cli.File
	for _, f := range timingFiles(rows, copying.Averages(run), copying.Iterations(run)) {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return err
		}
		files = append(files, cli.File{Name: f.name, Data: b.Bytes()})
	}
	return cli.WriteDir("-o", dir, files)
}

// timingFiles are the files of a run. They are the published tables for each file system,
// with averages; one table of all rows, with medians; and a line for each run. In the
// published layouts predicted rows have files of their own.
func timingFiles(rows, averages []timing.Row, iterations []string) []timingFile {
	files := []timingFile{
		table("timings.csv", timing.Whole, rows),
		{"iterations.txt", func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Join(iterations, "\n")+"\n")
			return err
		}},
	}
	const whole = 100 << 20 // of part C
	var systems []string
	for _, r := range rows {
		if !slices.Contains(systems, r.FileSystem) {
			systems = append(systems, r.FileSystem)
		}
	}
	for _, system := range systems {
		of := func(form timing.Form, more func(timing.Row) bool) []timing.Row {
			return slices.DeleteFunc(slices.Clone(averages), func(r timing.Row) bool {
				return r.FileSystem != system || r.Form != form || !more(r)
			})
		}
		any := func(timing.Row) bool { return true }
		for _, f := range []struct {
			name   string
			layout timing.Layout
			rows   []timing.Row
		}{
			{timing.FileName(system), timing.Averages, of(timing.Copy, func(r timing.Row) bool { return r.FileSize == whole })},
			{system + "_time_per_buffer_and_file_sizes.csv", timing.Sizes, of(timing.Copy, func(r timing.Row) bool { return r.FileSize != whole })},
			{system + "_time_per_buffer_O_SYNC.csv", timing.Averages, of(timing.Synced, any)},
			{timing.FileName(system + "_write"), timing.Script, of(timing.Write, any)},
		} {
			for _, predicted := range []bool{false, true} {
				rows := slices.DeleteFunc(slices.Clone(f.rows), func(r timing.Row) bool { return r.Predicted != predicted })
				if predicted {
					f.name = timing.PredictedName(f.name)
				}
				if len(rows) > 0 {
					files = append(files, table(f.name, f.layout, rows))
				}
			}
		}
	}
	return files
}

func table(name string, l timing.Layout, rows []timing.Row) timingFile {
	return timingFile{name, func(w io.Writer) error { return timing.WriteCSV(w, l, rows) }}
}
