package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/sweep"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
)

// traceCommand is the command that the program runs itself as, under ptrace, to
// count the system calls of each cell. Nothing of it is timed.
const traceCommand = "count-system-calls"

// trace counts the system calls of the matrix's cells under ptrace, if they can't
// be counted in this process. Where that can't be done either, the run goes on
// without, and says why.
func (s *Session) trace(ctx context.Context, m trial.Matrix) error {
	if s.counting != trial.NotCounting || runtime.GOOS != "linux" {
		return nil
	}
	s.Say("counting system calls under ptrace, in a run that is not timed")
	counts := map[string]*result.SystemCalls{}
	for _, g := range s.Place.Sites() {
		var all []result.Cell
		for _, c := range m.Cells {
			if c.FileSystem == g.FileSystem {
				all = append(all, c.Cell)
			}
		}
		cells, err := json.Marshal(tracedCells(all))
		if err != nil {
			return err
		}
		cmd := place.ThisProgram(ctx, traceCommand, "--dir", g.WorkDir.Inside())
		cmd.Stdin = strings.NewReader(string(cells))
		some, why := trial.CountByTrace(cmd)
		if why != "" {
			s.unseen += "; by ptrace: " + why
			return ctx.Err()
		}
		maps.Copy(counts, some)
	}
	s.traced, s.unseen = counts, ""
	return nil
}

// tracedCells returns each cell once.
func tracedCells(all []result.Cell) (cells []result.Cell) {
	for _, c := range all {
		if !c.Empty && c.Twin == "" {
			cells = append(cells, c)
		}
	}
	return cells
}

// NewTrace is that command.
func NewTrace() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:    traceCommand,
		Short:  "run the cells that the standard input lists once each, for bench to count their system calls",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cells []result.Cell
			if err := json.NewDecoder(cmd.InOrStdin()).Decode(&cells); err != nil {
				return cli.Misuse("bench calls this command itself", "the standard input lists no cells: %w", err)
			}
			ground, err := trial.OpenWorkDir(dir, true)
			if err != nil {
				return err
			}
			defer ground.Close()
			out := json.NewEncoder(cmd.OutOrStdout())
			for _, c := range cells {
				traced, err := sweep.Trace(cmd.Context(), ground, c)
				if err != nil {
					return fmt.Errorf("%s: %w", c.Name, err)
				}
				if err := out.Encode(traced); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().Var(cli.Once("dir", &dir, cli.Given), "dir", "directory to write in")
	return cmd
}
