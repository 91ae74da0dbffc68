package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/lab/page"
	"github.com/holdfast-go/holdfast/internal/lab/prove"
)

// mostVerdicts bounds the lines of a file of verdicts: a full proof has some hundreds.
const mostVerdicts = 100_000

// readProof reads the verdicts that prove -o has kept.
func readProof(name string) (verdicts []prove.Verdict, err error) {
	const hint = "verdicts are made by holdfast prove -o proof.jsonl"
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, cli.Misuse(hint, "--proof: there is no file %s", name)
	case err != nil:
		return nil, cli.Misuse("choose a file that you may read", "--proof %s: %w", name, cli.Cause(err))
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var v prove.Verdict
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) && len(verdicts) > 0 {
			return verdicts, nil
		}
		if err == nil && (v.Level == "" || v.Workload == "" || v.Verdict == "" || len(verdicts) == mostVerdicts) {
			err = errors.New("it is no verdict")
		}
		if err != nil {
			return nil, cli.Misuse(hint, "--proof %s: verdict %d: %w", name, len(verdicts)+1, err)
		}
		v.Loss = v.Policy.Loss()
		verdicts = append(verdicts, v)
	}
}

// proofPage shows verdicts: what each promise allows beside what was lost, and the story of what failed.
func proofPage(file string, verdicts []prove.Verdict) page.Section {
	t := page.Table{
		Name: "verdicts", Filter: 10,
		Head: []string{"workload", "level", "policy", "states", "acknowledged", "acknowledged and lost", "lost at most: records", "bytes", "age", "allowed", "verdict"},
	}
	s := page.Section{Title: "What was proven", Text: "Each promise beside what was lost in all crashes that were tried. A verdict is of these crashes, and of no others."}
	for i, v := range verdicts {
		verdict := string(v.Verdict)
		if v.Control != "" {
			verdict += ", a control: " + v.Control
		}
		allowed := v.Loss.Power
		if v.Level != prove.Memory && v.Level != prove.PowerCut {
			allowed = v.Loss.Process
		}
		promise := v.Policy.String()
		if v.Workload == "program" || strings.HasPrefix(v.Workload, "cli-") {
			promise = "its own promise"
		}
		level := strings.TrimSpace(string(v.Level) + " " + v.FS)
		number := humanize.Comma
		t.Rows = append(t.Rows, page.Row{Marked: v.Verdict == prove.Broken, Cells: oneLines(
			v.Workload, level, promise, number(v.Tally.States), number(v.Tally.Acknowledged), number(v.Tally.Lost),
			number(v.Tally.Most.Records), number(v.Tally.Most.Bytes), v.Tally.Most.Age.Round(time.Microsecond).String(), allowed.String(), verdict,
		)})
		switch {
		case v.Unknown != "":
			s.Notes = append(s.Notes, cli.OneLine(fmt.Sprintf("%s, %s under %s is not known: %s", level, v.Workload, promise, v.Unknown)))
		case v.Failure != nil:
			story := fmt.Sprintf("%s, %s under %s broke its promise: %s", level, v.Workload, promise, v.Failure.Words)
			if v.Failure.Log != nil {
				story += fmt.Sprintf(" To see it again: holdfast prove --replay %s:%d", file, i+1)
			}
			s.Notes = append(s.Notes, cli.OneLine(story))
		}
	}
	s.Tables = []page.Table{t}
	return s
}

func oneLines(texts ...string) []string {
	for i, text := range texts {
		texts[i] = cli.OneLine(text)
	}
	return texts
}
