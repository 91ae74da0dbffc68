package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const page = "docs/mutants.md"

const pageHead = `# Planted faults

Each row is a small change that makes the code wrong. It is planted in a copy of the file (go build's overlay; the tree is never
touched). The tests that know the code run first, then those of its whole package. A fault that no test sees is a promise that
no test holds. *Equivalent* is a change that no caller can see, and why. *Caught by a hang* is a fault that no test names: the
time limit ended the run. A test that fails must fail again, and pass without the fault. *Not run* counts neither as caught nor
as planted; rows of faults that were not planted since may be of an older tree.

Run all of it, alone on a machine, or a few by their numbers. At least 95 % of those that are not equivalent must be caught:

    go test ./internal/mutants -run Mutants -mutants -timeout 0 -v
    go test ./internal/mutants -run Mutants -mutants -timeout 0 -v -mutants.only '03b|W.*' -update

The second form also writes each row into this page as it is found. The table of the faults is [internal/mutants](../internal/mutants). A
test that always runs holds it to the sources: each fault's text must occur exactly once in its file. If you change that line, change the
fault with it, or say what became of it. The time is that of the tests, without building.
`

const tableHead = `
| # | planted | where | | by | time |
|---|---|---|---|---|---|
`

// row is a mutant's line of the table.
func row(m mutant, o outcome) string {
	took := ""
	if o.took > 0 {
		took = fmt.Sprintf("%d s", int((o.took + time.Second/2).Seconds()))
	}
	by := strings.NewReplacer("|", "/", "\n", " ").Replace(o.by)
	return fmt.Sprintf("%s %s | %s | %s |", rowHead(m), o.word, by, took)
}

// rowHead is the part of a mutant's line that does not depend on a run.
func rowHead(m mutant) string {
	return fmt.Sprintf("| %s | %s | %s |", m.number, m.what, m.file)
}

// rowsOf returns the lines of the table in a page, by their beginnings.
func rowsOf(text string) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for _, m := range all() {
			if strings.HasPrefix(line, rowHead(m)) {
				rows[rowHead(m)] = line
			}
		}
	}
	return rows
}

// publish writes the page anew, with the rows of those that were planted now.
func (p *planter) publish(t *testing.T, planted []mutant, results []outcome) {
	t.Helper()
	old, _ := os.ReadFile(filepath.Join(p.root, page)) // there may be none yet
	rows := rowsOf(string(old))
	for i, m := range planted {
		if results[i].err == nil {
			rows[rowHead(m)] = row(m, results[i])
		}
	}
	if err := os.WriteFile(filepath.Join(p.root, page), []byte(pageOf(rows)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// pageOf returns the page with these rows, and with empty ones for mutants that have none.
func pageOf(rows map[string]string) string {
	var table strings.Builder
	count := map[string]int{}
	for _, m := range all() {
		line := rows[rowHead(m)]
		switch {
		case m.removed != "":
			line = row(m, outcome{word: isRemoved, by: m.removed})
		case m.equivalent != "":
			line = row(m, outcome{word: isEquivalent, by: m.equivalent})
		case line == "":
			line = row(m, outcome{word: notRun})
		}
		for _, word := range []string{isCaught, hangs, notCaught, isEquivalent, isRemoved, notRun} {
			if strings.HasPrefix(line, rowHead(m)+" "+word+" |") {
				count[word]++
			}
		}
		table.WriteString(line + "\n")
	}
	caught := count[isCaught] + count[hangs]
	total := fmt.Sprintf("\n%d faults: %d caught of %d that can be (%d of them by a hang), %d equivalent, %d removed with their code",
		len(all()), caught, caught+count[notCaught], count[hangs], count[isEquivalent], count[isRemoved])
	if n := count[notRun]; n > 0 {
		total += fmt.Sprintf(", %d not run yet", n)
	}
	return pageHead + total + ".\n" + tableHead + table.String()
}

// TestPageShowsTheMutants holds the page to the table: it has a row for each fault, and
// its sums are those of its rows.
func TestPageShowsTheMutants(t *testing.T) {
	p := &planter{root: moduleRoot(t)}
	if *update && !*plant {
		p.publish(t, nil, nil)
	}
	text, err := os.ReadFile(filepath.Join(p.root, page))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(string(text), "\r\n", "\n")
	if want := pageOf(rowsOf(got)); got != want {
		t.Errorf("%s is not that of the table of faults; run go test ./internal/mutants -update", page)
	}
}
