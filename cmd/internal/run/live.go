package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/live"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// A following shows a run on the whole terminal. What is said meanwhile it shows below, and says
// it again when the terminal is given back. It is a standard error for one session.
type following struct {
	screen *live.Screen
	stop   context.CancelFunc
	stderr io.Writer

	mu     sync.Mutex
	closed bool
	said   strings.Builder
	step   string
	cells  []result.Cell        // those that have a line, in the order of the header
	costs  map[string][]float64 // nanoseconds a record, round by round
}

// follow takes the terminal over until close. The run's context ends when a key stops it; from then
// on the terminal is its user's again, so that another Ctrl-C ends the process.
func follow(cmd *cobra.Command) (context.Context, *following, error) {
	ctx, stop := context.WithCancel(cmd.Context())
	f := &following{stop: stop, stderr: cmd.ErrOrStderr(), step: "calibrating", costs: map[string][]float64{}}
	f.mu.Lock() // a key may come before the screen is known
	defer f.mu.Unlock()
	screen, err := live.Open(cmd.InOrStdin(), cmd.OutOrStdout(), func(key byte) {
		if key == 'q' || key == 'Q' || key == 3 { // Ctrl-C
			_ = f.close() // an error of the terminal has no reader
		}
	})
	if err != nil {
		stop()
		if errors.Is(err, live.ErrNoTerminal) {
			return nil, nil, cli.Misuse("leave it out: how far the run is stands on standard error in any case", "--live: %w", err)
		}
		return nil, nil, err
	}
	f.screen = screen
	return ctx, f, nil
}

// close gives the terminal back, and says what was said meanwhile. It may be called again.
func (f *following) close() error {
	f.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.screen == nil || f.closed {
		return nil
	}
	f.closed = true
	err := f.screen.Close()
	f.sayAgain(f.said.String())
	return err
}

// sayAgain folds lines as the terminal of standard error needs it: it is not seen through f.
func (f *following) sayAgain(lines string) {
	for line := range strings.Lines(lines) {
		cli.Say(f.stderr, "%s", strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "holdfast: "))
	}
}

func (f *following) Write(p []byte) (int, error) {
	f.mu.Lock()
	if f.closed {
		defer f.mu.Unlock()
		f.sayAgain(string(p))
		return len(p), nil
	}
	f.said.Write(p)
	f.mu.Unlock()
	f.draw("")
	return len(p), nil
}

// done takes the trial of a cell. Cells that show the noise, and those that write nothing, have no line.
func (f *following) done(h result.Header, t result.Trial) {
	i := slices.IndexFunc(h.Cells, func(c result.Cell) bool { return c.Name == t.Cell })
	if i < 0 || t.Round == 0 || h.Cells[i].Twin != "" || h.Cells[i].Empty {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.costs[t.Cell] == nil {
		at := func(c result.Cell) int {
			return slices.IndexFunc(h.Cells, func(of result.Cell) bool { return of.Name == c.Name })
		}
		f.cells = append(f.cells, h.Cells[i])
		slices.SortFunc(f.cells, func(a, b result.Cell) int { return at(a) - at(b) })
	}
	f.costs[t.Cell] = append(f.costs[t.Cell], figure.LoadOf(h.Cells[i]).Costs([]*result.Trial{&t})...)
}

// draw shows how far the run is: a line for each cell. A step that is not empty is the next trial.
func (f *following) draw(step string) {
	f.screen.Draw(func(columns, rows int) []string {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.step = cmp.Or(step, f.step)
		lines := f.lines(columns, rows)
		for i := range lines {
			lines[i] = cli.InLocale(lines[i])
		}
		return lines
	})
}

// saidLines is how many of the last lines that were said are shown.
const saidLines = 3

func (f *following) lines(columns, rows int) []string {
	keys := "Ctrl-C stops, and keeps what is measured"
	if f.screen.HasKeys {
		keys = "q stops, and keeps what is measured"
	}
	lines := []string{f.step, keys, ""}
	said := strings.Split(strings.TrimSuffix(f.said.String(), "\n"), "\n")
	folded := ""
	for _, line := range said[max(0, len(said)-saidLines):] {
		folded += report.Fold(line, columns)
	}
	said = strings.Split(strings.TrimSuffix(folded, "\n"), "\n")
	most := rows - len(lines) - len(said) - 3 // the heads of the columns, how many are left out, and a free line
	if len(f.cells) > 0 {
		wide, names := 0, make([]string, len(f.cells))
		for i, c := range f.cells {
			names[i] = lineText(c)
			wide = max(wide, utf8.RuneCountInString(names[i]))
		}
		wide = min(wide, columns/2)
		lines = append(lines, fmt.Sprintf("%-*s %9s %9s  %s", wide, "", "median", "last", "round by round"))
		for i, c := range f.cells {
			if i >= most {
				lines = append(lines, fmt.Sprintf("and %d more", len(f.cells)-i))
				break
			}
			costs, cut := f.costs[c.Name], []rune(names[i])
			lines = append(lines, fmt.Sprintf("%-*s %9s %9s  %s", wide, string(cut[:min(len(cut), wide)]),
				study.Duration(stat.Summarize(costs).Median), study.Duration(costs[len(costs)-1]), curve(costs, columns-wide-22)))
		}
		lines = append(lines, "")
	}
	return append(lines, said...)
}

// lineText names a cell so that no other has the name.
func lineText(c result.Cell) string {
	name := cellText(c)
	if c.Group == "" {
		name += fmt.Sprintf(" of %v", holdfast.Size(c.RecordBytes))
	}
	if c.Every > 0 {
		name += ", paced"
	}
	if c.FileSystem != "" && c.Group == "" {
		name = c.FileSystem + ": " + name
	}
	return name
}

// curve draws the last values in so many characters, from the least to the most of them.
func curve(values []float64, columns int) string {
	levels := "▁▂▃▄▅▆▇█"
	if cli.InLocale(levels) != levels {
		levels = "_.-=+*%#"
	}
	marks := []rune(levels)
	values = values[max(0, len(values)-max(0, columns)):]
	if len(values) == 0 {
		return ""
	}
	least, most := slices.Min(values), slices.Max(values)
	drawn := make([]rune, len(values))
	for i, v := range values {
		level := 0
		if most > least {
			level = int(float64(len(marks)-1) * (v - least) / (most - least))
		}
		drawn[i] = marks[level]
	}
	return string(drawn)
}
