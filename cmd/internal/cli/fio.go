package cli

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// FioFlag adds --emit-fio.
func FioFlag(f *pflag.FlagSet, path *string) {
	f.Var(Target("file", path, Given), "emit-fio", "write the fio job that comes nearest to the best policy to this\nnew file (-: standard output), so that others can check the figures")
}

// EmitFio writes the run's fio job to a new file, or for - to stdout. With an empty path it does
// nothing.
func EmitFio(stdout io.Writer, path string, run result.Run) error {
	write := func(w io.Writer) error { return report.Fio(w, run) }
	switch path {
	case "":
		return nil
	case "-":
		return write(stdout)
	}
	return writeNew("--emit-fio", path, write)
}
