package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// WriteReport writes a run in a format. Without a format it writes a page to a file, else all of the text, or the
// answer alone.
func WriteReport(w io.Writer, studies study.List, run result.Run, format report.Format, toFile, whole bool) error {
	switch {
	case format != "":
		return report.Export(w, studies, run, format)
	case toFile:
		return report.HTML(w, studies, run, report.More{})
	}
	return WriteText(w, studies, run, whole)
}

// WriteText writes a run's text, all of it or the answer alone, in the width of the terminal and the characters of the locale.
func WriteText(w io.Writer, studies study.List, run result.Run, whole bool) error {
	return WriteLocal(w, func(text io.Writer) error {
		return report.Text(text, studies, run, Columns(w), whole)
	})
}

// WriteLocal writes our own text in the width of the terminal and the characters of the locale, or
// nothing if write fails.
func WriteLocal(w io.Writer, write func(io.Writer) error) error {
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	_, err := io.WriteString(w, InLocale(folded(text.String(), columns(w, columnsAsked()))))
	return err
}

// Columns returns the greatest width of tables: the terminal's, or 100 if the output is none.
func Columns(w io.Writer) int { return columns(w, cmp.Or(columnsAsked(), 100)) }

// columnsAsked returns the value of $COLUMNS, or 0.
func columnsAsked() int {
	n, _ := strconv.Atoi(os.Getenv("COLUMNS"))
	return max(0, n)
}

// InLocale returns our own text in the characters of the locale. Windows has none in the
// environment, and gets UTF-8.
func InLocale(text string) string {
	name := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	if runtime.GOOS == "windows" || strings.Contains(name, "utf-8") || strings.Contains(name, "utf8") {
		return text
	}
	return report.ASCII(text)
}

// AllFlag adds --all to a command that prints a run.
func AllFlag(f *pflag.FlagSet, all *bool) {
	f.BoolVar(all, "all", false, "print every table, interval and doubt; without it only the answer, in\nabout 30 lines")
}

// PlotFlag adds --plot to a command that prints tables.
func PlotFlag(f *pflag.FlagSet, plot *bool) {
	f.BoolVar(plot, "plot", false, "below the table, draw it as text: a line for each policy or arm")
}

// WriteCurves draws a run in text, in the width of the terminal.
func WriteCurves(w io.Writer, run result.Run) error {
	text, err := curves(run, Columns(w))
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, InLocale(text))
	return err
}

// HintResults is a hint how to make results.
const HintResults = "results are made by holdfast bench -o results.jsonl"

// ReadResults reads the results that a user has named, for figures; - is stdin. Its errors are
// refusals. It ends with ctx, even if a pipe or a terminal sends nothing.
func ReadResults(ctx context.Context, name string, stdin io.Reader) (result.Run, error) {
	return ReadResultsTo(ctx, io.Discard, name, stdin)
}

// boundMemory delays garbage collection until memory is short. The trials of a long run stay in
// memory, and scanning them is a fifth of the work. Near the bound it keeps memory from growing to
// twice that.
func boundMemory() {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(980 << 20)
}

// ReadResultsTo is ReadResults that also copies each byte to w as it is read.
func ReadResultsTo(ctx context.Context, w io.Writer, name string, stdin io.Reader) (result.Run, error) {
	return readMost(ctx, w, name, stdin, result.MostTrials)
}

// ReadBeside is ReadResultsTo when the caller already holds held trials of other results.
func ReadBeside(ctx context.Context, w io.Writer, name string, stdin io.Reader, held int) (result.Run, error) {
	run, err := readMost(ctx, w, name, stdin, result.MostTrials-held)
	if errors.Is(err, result.ErrTooMany) {
		err = Misuse("split each file before the same round, copy its first line to each part, and compare the parts",
			"%s: a comparison takes at most %d trials in all, and these results have more", name, result.MostTrials)
	}
	return run, err
}

func readMost(ctx context.Context, w io.Writer, name string, stdin io.Reader, most int) (result.Run, error) {
	boundMemory()
	return readResults(ctx, name, stdin, func(r io.Reader) (result.Run, error) { return result.ReadMost(io.TeeReader(r, w), most) })
}

func readResults(ctx context.Context, name string, stdin io.Reader, read func(io.Reader) (result.Run, error)) (result.Run, error) {
	run, err := untilEnd(ctx, name, func() (result.Run, error) {
		if name == "-" {
			return readPlain(stdin, read)
		}
		return readFile(name, read)
	})
	switch {
	case err == nil, ctx.Err() != nil:
		return run, err
	case name == "":
		return run, Misuse(HintResults, "the name of the results is empty")
	case errors.Is(err, fs.ErrNotExist):
		return run, Misuse(HintResults, "there is no file %s", name)
	case errors.Is(err, fs.ErrPermission):
		return run, Misuse("choose a file that you may read", "%s: %w", name, Cause(err))
	case errors.Is(err, syscall.EISDIR):
		return run, Misuse(fmt.Sprintf("name a file in it; holdfast serve %[1]s shows all of them, and holdfast audit --from %[1]s judges the results of an audit", name), "%s is a directory, not a file of results", name)
	case errors.Is(err, result.ErrNewer):
		return run, Misuse("use the holdfast that made it, or a newer one", "%s: %w", name, err)
	case errors.Is(err, result.ErrTooMany):
		return run, Misuse("split the file before a round, copy its first line to each part, and report each part", "%s: %w", name, err)
	case errors.Is(err, result.ErrNoHeader):
		return run, Misuse("remove it, and start the run again", "%s: %w", name, err)
	}
	return run, Misuse(hintWhole(name, err), "%s: %w", name, Cause(err))
}

// hintWhole returns a hint how to save the lines before a damaged one.
func hintWhole(name string, err error) string {
	var format *result.FormatError
	switch {
	case strings.HasSuffix(name, ".gz"):
		return "if it is compressed, unpack it first: gunzip -k " + name
	case !errors.As(err, &format) || format.Line == 1 || name == "-":
		return HintResults
	}
	return fmt.Sprintf("the lines before it are intact: head -n %d %s > saved.jsonl keeps them, and --resume saved.jsonl continues the run", format.Line-1, name)
}

// ReadFile is ReadResults for a file with a reader such as [result.Read]. Its errors are not
// refusals.
func ReadFile(ctx context.Context, name string, read func(io.Reader) (result.Run, error)) (result.Run, error) {
	return untilEnd(ctx, name, func() (result.Run, error) { return readFile(name, read) })
}

// untilEnd calls read, and returns early if ctx ends: opening a pipe waits for its other end.
func untilEnd(ctx context.Context, name string, read func() (result.Run, error)) (result.Run, error) {
	type outcome struct {
		run result.Run
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		run, err := read()
		done <- outcome{run, err}
	}()
	select {
	case o := <-done:
		return o.run, o.err
	case <-ctx.Done():
		if name == "-" {
			name = "standard input"
		}
		return result.Run{}, &Refusal{Code: ExitInterrupted, Err: fmt.Errorf("interrupted while reading %s", name)}
	}
}

func readFile(name string, read func(io.Reader) (result.Run, error)) (result.Run, error) {
	switch info, err := os.Stat(name); {
	case err == nil && info.Mode()&os.ModeDevice != 0:
		return result.Run{}, errors.New("it is a device, not a file of results")
	case err == nil && info.IsDir(): // reading one is another error on Windows
		return result.Run{}, syscall.EISDIR
	}
	f, err := os.Open(name)
	if err != nil {
		return result.Run{}, err
	}
	defer f.Close()
	return readPlain(f, read)
}

func readPlain(r io.Reader, read func(io.Reader) (result.Run, error)) (result.Run, error) {
	run, err := read(r)
	return PlainRun(run), err
}

// PlainRun puts each text of results on one line, except the directory's name. A report must not
// have lines that the maker of the results has invented.
func PlainRun(run result.Run) result.Run {
	dir := run.Header.Dir
	oneLines{}.of(reflect.ValueOf(&run).Elem())
	run.Header.Dir = dir
	return run
}

// oneLines applies OneLine to every text in a value. It caches the fields with texts of each
// struct: most fields of a million trials are numbers.
type oneLines map[reflect.Type][]int

func (o oneLines) of(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(OneLine(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			o.of(v.Elem())
		}
	case reflect.Struct:
		fields, known := o[v.Type()]
		if !known {
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() && hasText(f.Type) {
					fields = append(fields, i)
				}
			}
			o[v.Type()] = fields
		}
		for _, i := range fields {
			o.of(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			o.of(v.Index(i))
		}
	case reflect.Map: // only the names of values are printed; settings have lines of their own
		for _, key := range v.MapKeys() {
			if name := OneLine(key.String()); name != key.String() {
				v.SetMapIndex(reflect.ValueOf(name), v.MapIndex(key))
				v.SetMapIndex(key, reflect.Value{})
			}
		}
	}
}

func hasText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Map:
		return true
	case reflect.Pointer, reflect.Slice:
		return hasText(t.Elem())
	case reflect.Struct:
		return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.IsExported() && hasText(f.Type) })
	}
	return false
}

// CannotReport adds an exit code and a hint to an error of a report.
func CannotReport(name string, err error) error {
	switch {
	case errors.Is(err, figure.ErrNoRound):
		return &Refusal{ExitCannot, fmt.Errorf("%s: there is nothing to show: %w", name, figure.ErrNoRound), "let holdfast bench run until its first round is done"}
	default:
		return err
	}
}
