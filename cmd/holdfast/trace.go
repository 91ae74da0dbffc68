package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/study"
	"github.com/holdfast-go/holdfast/internal/trial"
)

// traceCommand is the command that the program runs itself as, under ptrace, to
// count the system calls of each cell. Nothing of it is timed.
const traceCommand = "count-system-calls"

// trace counts the system calls of the matrix's cells under ptrace, if they can't
// be counted in this process. Where that can't be done either, the run goes on
// without, and says why.
func (s *session) trace(ctx context.Context, m trial.Matrix) error {
	if s.counting != trial.NotCounting || runtime.GOOS != "linux" {
		return nil
	}
	s.say("counting system calls under ptrace, in a run that is not timed")
	counts := map[string]*result.SystemCalls{}
	for _, g := range s.grounds() {
		some, err := s.traceOn(ctx, g, m)
		if err != nil || some == nil {
			return err
		}
		maps.Copy(counts, some)
	}
	s.traced, s.unseen = counts, ""
	return nil
}

// traceOn counts those of the cells that are on the file system of a site. Nil are
// none, and s.unseen says why.
func (s *session) traceOn(ctx context.Context, g study.Site, m trial.Matrix) (map[string]*result.SystemCalls, error) {
	var all []result.Cell
	for _, c := range m.Cells {
		if c.FileSystem == g.FileSystem {
			all = append(all, c.Cell)
		}
	}
	cells, err := json.Marshal(tracedCells(all))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", traceCommand, "--dir", g.Ground.Dir())
	cmd.Args[0] = os.Args[0]
	cmd.Stdin = strings.NewReader(string(cells))
	counts, why := trial.CountByTrace(cmd)
	if why != "" {
		s.unseen += "; by ptrace: " + why
		return nil, ctx.Err()
	}
	return counts, nil
}

// allCounted reports whether each cell that is traced has its counts.
func allCounted(run result.Run) bool {
	for _, c := range tracedCells(run.Header.Cells) {
		if _, ok := run.Counted(c.Name); !ok {
			return false
		}
	}
	return true
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

func newTrace() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:    traceCommand,
		Short:  "run the cells that the standard input lists once each, for bench to count their system calls",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cells []result.Cell
			if err := json.NewDecoder(cmd.InOrStdin()).Decode(&cells); err != nil {
				return misuse("bench calls this command itself", "the standard input lists no cells: %w", err)
			}
			return traceCells(cmd, dir, cells)
		},
	}
	cmd.Flags().Var(once("folder", &dir, given), "dir", "folder to write in")
	return cmd
}

func traceCells(cmd *cobra.Command, dir string, cells []result.Cell) error {
	ground, err := trial.OpenGround(dir, true)
	if err != nil {
		return err
	}
	defer ground.Close()
	tell := json.NewEncoder(cmd.OutOrStdout())
	for _, c := range cells {
		traced, err := study.Trace(cmd.Context(), ground, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if err := tell.Encode(traced); err != nil {
			return err
		}
	}
	return nil
}
