package recorded

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

const top = "../../.."

var update = flag.Bool("update", false, "write the tables of the pages anew, from docs/measured/peers")

func recordedRuns(t *testing.T) []machine {
	t.Helper()
	all, err := readAll(filepath.Join(top, "docs/measured/peers"))
	if err != nil || len(all) == 0 {
		t.Fatalf("%d machines, %v", len(all), err)
	}
	return all
}

// TestPagesShowTheRecordedRuns compares the tables of the pages with what the runs give. -update writes them.
func TestPagesShowTheRecordedRuns(t *testing.T) {
	all := recordedRuns(t)
	for _, table := range tables() {
		showsTable(t, table.page, table.name, table.markdown(all))
	}
	showsTable(t, performing, "slopes", slopesTable(all))
}

func showsTable(t *testing.T, page, name, want string) {
	path := filepath.Join(top, page)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- peers:%s -->\n", name), "<!-- peers:end -->\n"
	before, rest, found := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), begin)
	shown, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s lacks %q and its end", page, begin)
	}
	if shown == want {
		return
	}
	if !*update {
		t.Errorf("%s: the table %s is not that of the recorded runs; go test -C dev/peers ./recorded -update writes it", page, name)
		return
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestEachClaimIsSupportedByARecordedRun: and it is of the worst machine: no recorded figure is below it.
func TestEachClaimIsSupportedByARecordedRun(t *testing.T) {
	all, in := recordedRuns(t), map[string]string{}
	for _, c := range claims(tables()) {
		for _, g := range c.groups {
			if in[g] != "" {
				t.Errorf("%s is in two claims, %q and %q: check runs a group once", g, in[g], c.says)
			}
			in[g] = c.says
		}
		supported := false
		for _, m := range all {
			for _, f := range c.in(m) {
				supported = supported || c.supports(f)
				if f.ratio.of < c.least {
					t.Errorf("%s (at least %.2f): %s has %v in %s/%s", c.says, c.least, m.name, f.ratio, f.group, c.arm)
				}
			}
		}
		if !supported {
			t.Errorf("%s (at least %.2f): no run supports it", c.says, c.least)
		}
	}
}

const printed = `10 rounds in random order

## g/n=8: a title: with a colon

| arm | time per record | 95 % | time ÷ holdfast | 95 % | than holdfast | CPU per record | CPU ÷ holdfast | 95 % | slowest |
|---|--:|--:|--:|--:|---|--:|--:|--:|--:|
| holdfast | 2 µs | 1 µs–3 µs |  |  |  | 3 µs |  |  | 9 |
| peer 4KiB | 6 µs | 5 µs–7 µs | 3.00 | 2.50–3.50 | slower | 6 µs | 2.00 | 1.80–2.20 | 8 |
| peer 64KiB | 5 µs | 4 µs–6 µs | 2.50 | 2.00–3.00 | slower | 7 µs | 2.30 | 2.10–2.50 | 7 |
| broken | does not count: no such file |  |  |  |  |  |  |  |  |

- ` + "`holdfast`: a Writer.\n"

func machineOf(t *testing.T, name, text string) machine {
	t.Helper()
	m := machine{name: name, groups: map[string]group{}}
	if err := m.read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPrintedRunIsRead(t *testing.T) {
	m := machineOf(t, "m", printed)
	g := m.groups["g/n=8"]
	if len(g) != 3 || g["holdfast"].time != 2000 || g["holdfast"].cpu != 3000 || g["holdfast"].more["slowest"] != "9" {
		t.Errorf("read as %+v", g)
	}
	if r, ok := g.ratio("peer *", false); !ok || r != (ratio{2.5, 2, 3}) {
		t.Errorf("the fastest peer has %v, %v", r, ok)
	}
	if r, ok := g.ratio("peer 4KiB", true); !ok || r != (ratio{2, 1.8, 2.2}) {
		t.Errorf("its CPU: %v, %v", r, ok)
	}
	if err := m.read(strings.NewReader(printed)); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("the same group twice: %v", err)
	}
	for _, wrong := range []string{strings.Replace(printed, "2.50–3.50", "2.5o–3.50", 1), strings.Replace(printed, " 5 µs–7 µs |", "", 1)} {
		m := machine{name: "m", groups: map[string]group{}}
		if err := m.read(strings.NewReader(wrong)); err == nil {
			t.Error("a damaged run is read")
		}
	}
}

const slopesPrinted = `Medians of 3 rounds, in tmpfs.

## records, slope 0.10

| records | time of a record | slope from the row above | memory |
|--:|--:|--:|--:|
| 10000 | 100 ns |  |  |
| 100000 | 125 ns | 0.10 | 4.1 MB |

## paths, slope %s

| paths | time of a path | slope from the row above | memory |
|--:|--:|--:|--:|
| 200 | 3 µs |  |  |
| 2000 | 2 µs | -0.18 | 1 MB |
`

// TestSlopesAreOfTheSteepestMachine reads two.
func TestSlopesAreOfTheSteepestMachine(t *testing.T) {
	both := []machine{machineOf(t, "a", fmt.Sprintf(slopesPrinted, "-0.18")), machineOf(t, "b", strings.ReplaceAll(fmt.Sprintf(slopesPrinted, "-0.30"), "100 ns", "101 ns"))}
	want := "| grows | from, to | slope | first, last unit | steepest step | memory at the end |\n|---|--:|--:|--:|--:|--:|\n" +
		"| records | 10⁴, 10⁵ | 0.10 | 100 ns, 125 ns | 0.10, to 10⁵ | 4.1 MB |\n| paths | 200, 2000 | -0.18 | 3 µs, 2 µs | – | 1 MB |\n"
	if got := slopesTable(both); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	machineOf(t, "c", printed+fmt.Sprintf(slopesPrinted, "0.00"))
}

// TestCellHasTheMedianAndTheWorst of two machines.
func TestCellHasTheMedianAndTheWorst(t *testing.T) {
	slower := strings.NewReplacer("2.50 | 2.00–3.00", "1.60 | 1.50–1.70", "| 2 µs |", "| 8 µs |", "| 3 µs |  |  | 9 |", "| 3 µs |  |  | 4 |").Replace(printed)
	both := []machine{machineOf(t, "a", printed), machineOf(t, "b", slower)}
	table := table{first: "n", rows: rowsOfOne([]int{8, 9}), columns: []column{
		timeOf("ours", "g/n=%d", "holdfast"), rateOf("slowest", "g/n=%d", "holdfast", "slowest"), ratioOf("peer", "g/n=%d", "peer *"), cpuRatioOf("CPU", "g/n=%d", "peer *"), noiseOf("far", "g/n=%d", "peer 4KiB")},
		claims: []claim{{"It is ahead", "k", []string{"g/n=8"}, "peer *", 1.5, false}}}
	want := "| n | ours | slowest | peer | CPU | far |\n|---|--:|--:|--:|--:|--:|\n" +
		"| 8 | 4 µs; 8 µs | 6; 4 | 2.00; 1.60 (1.50–1.70) | 2.30; 2.30 (2.10–2.50) | 3.00; 3.00 (2.50–3.50) |\n| 9 | – | – | – | – | – |\n" +
		"\nClaimed, of the worst machine (`go run -C dev/peers . check`):\n\n- It is ahead. The worst recorded: 1.60 (1.50–1.70), `g/n=8`, on b.\n"
	if got := table.markdown(both); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestCheckBeginsWithTheWorst of the recorded runs.
func TestCheckBeginsWithTheWorst(t *testing.T) {
	m := machineOf(t, "m", printed+strings.NewReplacer("g/n=8", "g/n=9", "2.50 | 2.00–3.00", "1.60 | 1.50–1.70").Replace(printed))
	c := claim{groups: []string{"g/n=8", "g/n=9", "g/n=10"}, arm: "peer *"}
	worst, others := apart([]claim{c}, []machine{m})
	if got := fmt.Sprint(worst[0].groups, others[0].groups); got != "[g/n=9] [g/n=8 g/n=10]" {
		t.Error(got)
	}
	if worst, _ := apart([]claim{c}, nil); worst[0].groups[0] != "g/n=8" {
		t.Errorf("without a run: %v", worst[0].groups)
	}
}

// TestCheckFailsWhereAClaimIsRefuted lets a kind print the run above.
func TestCheckFailsWhereAClaimIsRefuted(t *testing.T) {
	said := printed
	kind := command.Kind{Name: "k", Run: func(_ context.Context, args []string, stdout, _ io.Writer) error {
		if line := strings.Join(args, " "); !strings.HasSuffix(line, `-run ^(g/n=8/peer .*)$`) {
			t.Errorf("run with %s", line)
		}
		_, err := io.WriteString(stdout, said)
		return err
	}}
	t.Chdir("..") // where the command runs
	f := command.NewFlags("check", "")
	var others float64
	run := func(least float64, word string, fails bool) {
		t.Helper()
		var out bytes.Buffer
		err := check(t.Context(), f, []claim{{"It is ahead", "k", []string{"g/n=8"}, "peer *", least, false}}, []command.Kind{kind}, func() float64 { return others }, &out, io.Discard)
		if errors.Is(err, command.ErrFailed) != fails || !strings.Contains(out.String(), word) {
			t.Errorf("at least %v: %v\n%s", least, err, &out)
		}
	}
	run(1.9, "holds", false)
	run(1.9, "1 hold, 0 are below, 0 are not proven.", false)
	run(2.5, "not proven", false)
	run(3.1, "**refuted**", true)
	if err := judge([]claim{{"It is ahead", "k", []string{"g/n=8"}, "peer *", 2.5, false}}, machineOf(t, "m", said), 0, io.Discard); command.ExitCode(err) != command.ExitUnmeasured {
		t.Errorf("where nothing is proven: %v", err)
	}
	others = 0.9 // a claim is not refuted by the load of others, and the exit code says that nothing is known
	run(1.9, "holds", false)
	run(3.1, "below, beside load", false)
	if err := judge([]claim{{"It is ahead", "k", []string{"g/n=8"}, "peer *", 3.1, false}}, machineOf(t, "m", said), others, io.Discard); command.ExitCode(err) != command.ExitUnmeasured {
		t.Errorf("beside load: %v", err)
	}
	others = 0
	said = strings.Replace(printed, "| peer 4KiB |", "| holdfast (twin) | 1.8 µs | 1 µs–3 µs | 0.90 | 0.80–1.00 | not proven | 3 µs | 1.00 | 0.90–1.10 | 9 |\n| peer 4KiB |", 1)
	run(3.1, "not proven", false) // 3.00 is within a tenth, as the same code twice
	run(3.5, "**refuted**", true)
}
