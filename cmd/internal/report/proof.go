package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/chart"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/internal/crash"
)

// A full proof has some hundreds of verdicts, and each may have a whole log.
const (
	mostVerdicts = 100_000  // in a file
	mostVerdict  = 64 << 20 // bytes that are read to see whether a file has verdicts
)

// readProof reads the verdicts that prove -o has kept.
func readProof(name string) (verdicts []crash.Verdict, err error) {
	const hint = "verdicts are made by holdfast prove -o proof.jsonl"
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, cli.Misuse(hint, "--proof: there is no file %s", name)
	case err != nil:
		return nil, cli.Misuse("choose a file that you may read", "--proof %s: %w", name, cli.Cause(err))
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var v crash.Verdict
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) && len(verdicts) > 0 {
			return verdicts, nil
		}
		if err == nil && (!isVerdict(v) || len(verdicts) == mostVerdicts) {
			err = errors.New("it is not a verdict")
		}
		if err != nil {
			return nil, cli.Misuse(hint, "--proof %s: verdict %d: %w", name, len(verdicts)+1, err)
		}
		verdicts = append(verdicts, v)
	}
}

// isProof reports whether a file begins with a verdict. A pipe is read once, and nobody may be at its other end.
func isProof(name string) bool {
	if i, err := os.Stat(name); err != nil || !i.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var v crash.Verdict
	return json.NewDecoder(io.LimitReader(f, mostVerdict)).Decode(&v) == nil && isVerdict(v)
}

func isVerdict(v crash.Verdict) bool { return v.Level != "" && v.Workload != "" && v.Verdict != "" }

// proofHTML writes the page of verdicts alone.
func proofHTML(w io.Writer, file string, verdicts []crash.Verdict) error {
	s := proofPage(file, verdicts)
	p := page.Page{Title: "holdfast: prove", Question: "What do crashes lose, compared with the loss that each policy allows?", Answer: s.Answer}
	s.Answer = nil
	p.Sections = []page.Section{{Title: "By level", Charts: levelChart(verdicts), Tables: []page.Table{levelTable(verdicts)}}, s}
	return page.Write(w, p)
}

// levelTable sums up the verdicts of each level, and of each file system at level power. Controls' verdicts are counted
// apart.
func levelTable(verdicts []crash.Verdict) page.Table {
	t := page.Table{Name: "levels", Head: []string{"level", "verdicts", "held", "states", "acknowledged", "of these lost", "controls that held", "liars caught"}}
	var levels []string
	for _, v := range verdicts {
		if level := levelOf(v); !slices.Contains(levels, level) {
			levels = append(levels, level)
		}
	}
	for _, level := range levels {
		var all crash.Tally
		count, held := map[string]int{}, map[string]int{} // by what a control must show; of a verdict that is ""
		for _, v := range verdicts {
			if levelOf(v) != level {
				continue
			}
			of := v.Control
			if of != "" && of != "correct" {
				of = "liar"
			}
			if count[of]++; v.Verdict == crash.Held {
				held[of]++
			}
			if of == "" {
				all.Add(v.Tally)
			}
		}
		of := func(kind string) string { return fmt.Sprintf("%d of %d", held[kind], count[kind]) }
		t.Rows = append(t.Rows, page.Row{Cells: oneLines(level, fmt.Sprint(count[""]), fmt.Sprint(held[""]), cli.Grouped(all.States),
			cli.Grouped(all.Acknowledged), cli.Grouped(all.Lost), of("correct"), of("liar"))})
	}
	return t
}

// levelChart draws the verdicts of each level: promises that held and that broke, liars that were caught and that were not.
func levelChart(verdicts []crash.Verdict) []page.Chart {
	names := []string{"promise held", "promise broken", "not known", "control as expected", "control not as expected", "skipped: time ran out"}
	p := chart.Plot{
		Title: "verdicts of each level, and controls, which show that a loss would be found", Stacked: true,
		X: chart.Axis{Name: "verdicts", Low: 0, High: 1}, Y: chart.Axis{Categories: []string{}},
	}
	looks := []int{2, 1, 4, 0, 6, 7}
	for i, name := range names {
		p.Series = append(p.Series, chart.Series{Name: name, As: chart.Bars, Look: looks[i]})
	}
	counts := map[string][]int{}
	for _, v := range verdicts {
		level := levelOf(v)
		if counts[level] == nil {
			counts[level] = make([]int, len(names))
			p.Y.Categories = append(p.Y.Categories, level)
		}
		of := 2
		switch {
		case v.Control == "" && v.Verdict == crash.Held:
			of = 0
		case v.Control == "" && v.Verdict == crash.Broken:
			of = 1
		case v.Verdict == crash.NoTime:
			of = 5
		case v.Control != "" && v.Verdict == crash.Held:
			of = 3
		case v.Control != "" && v.Verdict == crash.Broken:
			of = 4
		}
		counts[level][of]++
	}
	for row, level := range p.Y.Categories {
		for i := range names {
			if n := counts[level][i]; n > 0 {
				p.Series[i].Marks = append(p.Series[i].Marks, chart.Mark{X: float64(n), Y: float64(row), Label: fmt.Sprint(n), Title: fmt.Sprintf("%s, %s: %d", level, names[i], n)})
			}
		}
	}
	p.Series = slices.DeleteFunc(p.Series, func(s chart.Series) bool { return len(s.Marks) == 0 })
	svg := p.SVG()
	if svg == "" {
		return nil
	}
	return []page.Chart{{Picture: svg, Caption: "A control is a program whose result is known: a correct one must lose nothing, and a liar, which acknowledges bytes before they are safe, must be caught."}}
}

func levelOf(v crash.Verdict) string { return strings.TrimSpace(string(v.Level) + " " + v.FS) }

// proofPage shows verdicts: the story of each failure, and each promise's allowed loss beside the real one.
func proofPage(file string, verdicts []crash.Verdict) page.Section {
	t := page.Table{
		Name: "verdicts", Filter: 3,
		Head: []string{"workload", "level", "policy", "verdict", "states", "acknowledged", "of these lost", "largest loss: records", "bytes", "age", "allowed",
			"mean loss", "torn", "order", "temporaries", "unmountable", "seed"},
	}
	s := page.Section{Title: "What was proven", Text: "The allowed loss of each promise, and the largest loss in all crashes of the run. A verdict holds for these crashes only."}
	var all crash.Tally
	count := map[crash.Known]int{}
	for i, v := range verdicts {
		verdict := string(v.Verdict)
		switch {
		case v.Control == "":
			count[v.Verdict]++
			all.Add(v.Tally)
		case v.Verdict != crash.Held:
			verdict = "control: " + verdict
		case v.Control == "correct":
			verdict = "control: loses nothing"
		default:
			verdict = "control: caught"
		}
		promise := v.Policy.String()
		if v.Workload == "program" || strings.HasPrefix(v.Workload, "cli-") {
			promise = "its own promise"
		}
		level, number, mean := levelOf(v), cli.Grouped, max(1, v.Tally.States)
		t.Rows = append(t.Rows, page.Row{Marked: v.Verdict == crash.Broken, Cells: oneLines(
			v.Workload, level, promise, verdict, number(v.Tally.States), number(v.Tally.Acknowledged), number(v.Tally.Lost),
			number(v.Tally.Most.Records), number(v.Tally.Most.Bytes), v.Tally.Most.Age.Round(time.Microsecond).String(), v.Allowed,
			fmt.Sprintf("%d records, %d B, %v", v.Tally.Sum.Records/mean, v.Tally.Sum.Bytes/mean, (v.Tally.Sum.Age/time.Duration(mean)).Round(time.Microsecond)),
			number(v.Tally.TornTails), number(v.Tally.Disorder), fmt.Sprintf("%d, then %d", v.Tally.Temporaries, v.Tally.TemporaryEnd),
			number(v.Tally.Unmountable), fmt.Sprint(v.Seed),
		)})
		switch {
		case v.Unknown != "":
			s.Notes = append(s.Notes, cli.OneLine(fmt.Sprintf("%s, %s under %s is not known: %s", level, v.Workload, promise, v.Unknown)))
		case v.Failure != nil:
			story := fmt.Sprintf("%s, %s under %s broke its promise: %s", level, v.Workload, promise, v.Failure.Words)
			if v.Failure.Log != nil {
				story += fmt.Sprintf(". To repeat it: holdfast prove --replay %s:%d", file, i+1)
				if v.Failure.Log.Program != nil {
					story += " --cmd … --read …"
				}
			}
			s.Answer = append(s.Answer, cli.OneLine(story))
		}
	}
	said := fmt.Sprintf("%s held", cli.CountText(int64(count[crash.Held]), "promise"))
	for _, of := range []struct {
		known crash.Known
		text  string
	}{{crash.Broken, "%s, %d broken"}, {crash.NotKnown, "%s, %d not known"}, {crash.NoTime, "%s, %d skipped because time ran out"}} {
		if n := count[of.known]; n > 0 {
			said = fmt.Sprintf(of.text, said, n)
		}
	}
	said += fmt.Sprintf(". In %s, %s of %s lost.", cli.CountText(all.States, "crash state"), cli.Grouped(all.Lost), cli.CountText(all.Acknowledged, "acknowledged record"))
	s.Answer = append([]string{said}, s.Answer...)
	s.Tables = []page.Table{t}
	return s
}

func oneLines(texts ...string) []string {
	for i, text := range texts {
		texts[i] = cli.OneLine(text)
	}
	return texts
}
