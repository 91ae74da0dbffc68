package advise_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

// TestSettingsAreInTheTable: each program with a preset has two settings or more, one of them loses nothing or states its
// loss, and each has its row in the document.
func TestSettingsAreInTheTable(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/advise.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range advise.PresetNames() {
		p, err := advise.ParsePreset(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Settings()) < 2 {
			t.Errorf("%s has %d settings", name, len(p.Settings()))
		}
		for _, s := range p.Settings() {
			if err := s.Policy.Validate(); err != nil {
				t.Errorf("%s, %s: %v", name, s.Text, err)
			}
			if none := s.Policy.Loss().Power.None(); none != strings.HasPrefix(s.Loses, "nothing") {
				t.Errorf("%s, %s loses %s, and its policy %v", name, s.Text, s.Loses, s.Policy.Loss().Power)
			}
			program, _, _ := strings.Cut(name, "-")
			row := regexp.MustCompile(fmt.Sprintf("\n\\| %s \\| `%s` \\| %s \\| `%s` \\| \\[[^]]+\\]\\(%s\\) \\|", program, regexp.QuoteMeta(s.Text), regexp.QuoteMeta(s.Loses), advise.Name(s.Policy), regexp.QuoteMeta(s.Source)))
			if !row.Match(text) {
				t.Errorf("docs/advise.md lacks the row%s", row)
			}
		}
	}
}

// TestExplainHasEachSetting: with the time of an append under the policy that does the same as the
// setting.
func TestExplainHasEachSetting(t *testing.T) {
	p, err := advise.ParsePreset("postgres")
	if err != nil {
		t.Fatal(err)
	}
	var rows []figure.Row
	for i, s := range p.Settings() {
		r := plant{policy: s.Policy.String(), cpu: 1, rate: 1}.row()
		r.Cell.RecordBytes, r.Cell.Writers = p.Load.RecordBytes, p.Load.Writers
		r.Net.Write = summary(float64(1000 * (i + 1)))
		rows = append(rows, r)
	}
	var b strings.Builder
	if err := p.Explain(&b, planted(rows...)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^\* synchronous_commit=on +nothing +1µs +durable$`,
		`(?m)^  synchronous_commit=off +the commits of the last 600ms \(3 × wal_writer_delay\) +2µs \+ +periodic=200ms$`,
		`(?m)^  fsync=off +any commit; the database may be corrupt +3µs +unbuffered$`,
		`(?m)^  https://www.postgresql.org/docs/current/runtime-config-wal.html$`,
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("there is no %s in\n%s", want, &b)
		}
	}
	b.Reset()
	if err := p.Explain(&b, planted(rows[0])); err != nil || !strings.Contains(b.String(), "not measured") {
		t.Errorf("%v: %s", err, &b)
	}
}

// TestOpenMetricsAreLinesOfPrometheus: each line has a name, labels and a number, below the line of its family;
// exactly one verdict is 1.
func TestOpenMetricsAreLinesOfPrometheus(t *testing.T) {
	row := plant{policy: "sync=group", cpu: 1000, rate: 1e5, due: 1e5, p99: 2 * ms}.row()
	r, err := advise.Recommend(planted(row), need(t, "loss<=0,rate>=50k/s,p99<10ms,cpu<=50%"), advise.Load{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.OpenMetrics(&b, `odd "name"`); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^([a-z_]+)\{([a-z_]+="(?:[^"\\]|\\.)*",?)+\} (-?[0-9.e+-]+)$`)
	families, ones := map[string]bool{}, 0
	for text := range strings.Lines(b.String()) {
		text = strings.TrimSuffix(text, "\n")
		if name, ok := strings.CutPrefix(text, "# TYPE "); ok {
			families[strings.Fields(name)[0]] = true
		}
		if strings.HasPrefix(text, "#") {
			continue
		}
		m := line.FindStringSubmatch(text)
		if m == nil || !families[m[1]] {
			t.Errorf("%q", text)
			continue
		}
		if m[1] == "holdfast_need" && m[3] == "1" {
			ones++
		}
	}
	if ones != 1 || !strings.HasSuffix(b.String(), "\n# EOF\n") {
		t.Errorf("%d verdicts:\n%s", ones, &b)
	}
	for _, want := range []string{`term="p99",program="odd \"name\""} 0.01`, `holdfast_term_limit_records_per_second{`, `term="cpu",program="odd \"name\""} 0.5`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %s in\n%s", want, &b)
		}
	}
}
