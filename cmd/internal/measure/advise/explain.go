package advise

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
)

// Explain writes a table of the settings of the preset's program: the loss at a power cut by the program's
// documentation, and the time of an append by these figures.
func (p Preset) Explain(w io.Writer, f figure.Figures) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: what its settings lose at a power cut, and what they cost on this disk\n", p.program())
	parts := []string{Load{p.Load.RecordBytes, p.Load.Writers}.String(), rounds(f.Rounds)}
	for _, name := range []string{"file system", "device"} {
		if v := machine.Get(f.Run.Header.Machine, name).Value; v != machine.Unknown {
			parts = append(parts, v)
		}
	}
	fmt.Fprintf(&b, "%s\n\n", strings.Join(parts, ", "))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  setting\tlost at a power cut\tan append\tlike policy\n")
	var sources []string
	later := false
	for i, s := range p.Settings() {
		mark := "  "
		if i == 0 {
			mark = "* "
		}
		took := "not measured"
		for _, g := range f.Groups {
			at := slices.IndexFunc(g.Rows, func(r figure.Row) bool { return r.Cell.Policy == s.Policy })
			if at >= 0 && !g.Paced && g.RecordBytes == p.Load.RecordBytes && g.Writers == p.Load.Writers {
				took = nanoseconds(figure.Number(g.Rows[at].Net.Write.Median))
			}
		}
		if s.background() && s.Policy.Sync.Mode != holdfast.SyncNever {
			took += " +"
			later = true
		}
		fmt.Fprintf(t, "%s%s\t%s\t%s\t%s\n", mark, s.Text, s.Loses, took, Name(s.Policy))
		if !slices.Contains(sources, s.Source) {
			sources = append(sources, s.Source)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString("* the default\n")
	if later {
		b.WriteString("+ and syncs in the background, for which no append waits\n")
	}
	b.WriteString("\nLosses, as the program's documentation states them:\n")
	for _, s := range sources {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	fmt.Fprintf(&b, "The time is of holdfast's Writer under that policy, and not of the program.\n")
	_, err := io.WriteString(w, b.String())
	return err
}
