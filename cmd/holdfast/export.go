package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/internal/report"
)

// exportFlag adds --export, which has the same formats everywhere.
func exportFlag(f *pflag.FlagSet, format *report.Format, usage string) {
	var names []string
	for _, one := range report.Formats() {
		names = append(names, string(one))
	}
	f.Var(once("format", format, report.ParseFormat), "export", usage+": "+strings.Join(names, ", "))
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
		return isFree(flag, path)
	}
	if err != nil {
		return misuse("choose a file in an existing folder that you may write to", "%s %s: %w", flag, path, cause(err))
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
