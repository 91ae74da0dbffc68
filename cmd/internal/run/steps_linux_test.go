package run

import (
	"bytes"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestMessagesBeginALine: the bar of the warm-up stands where the first figures are said.
func TestMessagesBeginALine(t *testing.T) {
	t.Setenv("TERM", "xterm")
	controller, terminal := isolate.Terminal(t, 100)
	s := &Session{stderr: terminal, show: cli.NewProgress(terminal, false)}
	s.Run.Header.Cells = []result.Cell{
		{Name: "each", Policy: holdfast.EachDurable(), Writers: 1},
		{Name: "none", Policy: holdfast.Unbuffered(), Writers: 1},
	}
	s.showStep(trial.Step{Trial: 2, Trials: 8, Cell: s.Run.Header.Cells[1]})
	for i, cell := range []string{"each", "none"} {
		s.Run.Trials = append(s.Run.Trials, &result.Trial{Cell: cell, Measurement: result.Measurement{Records: 1, Write: time.Duration(i+1) * time.Microsecond}})
	}
	s.showStep(trial.Step{Round: 1, Trial: 3, Trials: 8, Cell: s.Run.Header.Cells[0]})
	s.Say("the end")
	var shown []byte
	for piece := make([]byte, 4096); !bytes.HasSuffix(shown, []byte("the end\r\n")); {
		n, err := controller.Read(piece)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, piece[:n]...)
	}
	for _, text := range []string{"holdfast: first figures", "holdfast: the end"} {
		before, _, ok := bytes.Cut(shown, []byte(text))
		if !ok || !bytes.HasSuffix(before, []byte("\r")) && !bytes.HasSuffix(before, []byte("\n")) {
			t.Errorf("%q does not begin a line of %q", text, shown)
		}
	}
}
