package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/internal/report"
)

// exportFlag adds --export with the formats that a command has.
func exportFlag(f *pflag.FlagSet, format *report.Format, usage string, formats ...report.Format) {
	var names []string
	for _, one := range formats {
		names = append(names, string(one))
	}
	parse := func(text string) (report.Format, error) {
		one, err := report.ParseFormat(text)
		if err == nil && !slices.Contains(formats, one) {
			err = &unfitFormat{one, names}
		}
		return one, err
	}
	f.Var(once("format", format, parse), "export", usage+": "+strings.Join(names, ", "))
}

// An unfitFormat is a format that another command has.
type unfitFormat struct {
	format report.Format
	names  []string
}

func (e *unfitFormat) Error() string {
	return string(e.format) + " is not a format of this command; it has " + strings.Join(e.names, ", ")
}

// writeOut writes to the new file of -o, or with an empty path to stdout.
func writeOut(stdout io.Writer, path string, write func(io.Writer) error) error {
	if path == "" {
		return write(stdout)
	}
	return writeNew("-o", path, write)
}

// writeNew writes to the new file that a flag names. If that fails, no file is
// left.
func writeNew(flag, path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return misuse("choose another name, or remove it first", "%s %s: the file exists, and nothing is overwritten", flag, path)
	}
	if err != nil {
		return misuse("choose a file in an existing folder that you may write to", "%s %s: %w", flag, path, cause(err))
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
