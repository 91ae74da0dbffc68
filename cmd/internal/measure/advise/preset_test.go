package advise_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/advise"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

func TestPresetsAreNeedsThatTheirPoliciesCanKeep(t *testing.T) {
	for _, name := range advise.PresetNames() {
		p, err := advise.ParsePreset(name)
		if err != nil || p.String() != name || len(p.Policies) == 0 || p.Load.RecordBytes <= 0 || p.Load.Writers <= 0 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if again := need(t, p.Need.String()); again.String() != p.Need.String() {
			t.Errorf("%s: the need %v is read as %v", name, p.Need, again)
		}
		for _, policy := range p.Policies {
			if err := policy.Validate(); err != nil || !p.Need.Covers(policy) {
				t.Errorf("%s: %v does not keep %v, %v", name, policy, p.Need, err)
			}
		}
	}
	if _, err := advise.ParsePreset("oracle"); err == nil || !strings.Contains(err.Error(), `"oracle" is not a known program; use etcd, redis-everysec,`) {
		t.Errorf("%v", err)
	}
	for name, want := range map[string]string{"postgrez": "postgres", "redsi": "redis", "mongo": "mongodb-journal", "sqlite-ful": "sqlite-full"} {
		if _, err := advise.ParsePreset(name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("did you mean %q?", want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPresetsAreInTheTable looks for the row of each preset, with a source.
func TestPresetsAreInTheTable(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/advise.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range advise.PresetNames() {
		p, err := advise.ParsePreset(name)
		if err != nil {
			t.Fatal(err)
		}
		row := fmt.Sprintf("\n| `%s` | `%v` | %v, %d | %s | ", name, p.Need, holdfast.Size(p.Load.RecordBytes), p.Load.Writers, policiesText(p.Policies))
		_, after, found := strings.Cut(string(text), row)
		after, _, _ = strings.Cut(after, "\n")
		if !found || !strings.Contains(after, "](https://") {
			t.Errorf("the table has no row%swith a source: %s", row, after)
		}
	}
}

func policiesText(list []holdfast.Policy) string {
	var all []string
	for _, p := range list {
		all = append(all, "`"+p.String()+"`")
	}
	return strings.Join(all, " ")
}

func TestVerdict(t *testing.T) {
	check := func(name, want string, p plant) {
		t.Helper()
		preset, err := advise.ParsePreset(name)
		if err != nil {
			t.Fatal(err)
		}
		row := p.row()
		row.Cell.RecordBytes, row.Cell.Writers = preset.Load.RecordBytes, preset.Load.Writers
		r, err := advise.Recommend(planted([]figure.Row{row}...), preset.Need, preset.Load)
		if got := preset.Verdict(r); err != nil || got != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	}
	check("etcd", "fast enough: p99 of a durable append of 2300B is 1.2ms; etcd asks for less than 10ms",
		plant{policy: "buffer=64KiB,sync=group", cpu: 1, rate: 1, p99: 1200 * ms / 1000})
	check("etcd", "not fast enough: p99 of a durable append of 2300B is 12ms; etcd asks for less than 10ms",
		plant{policy: "buffer=0,sync=each", cpu: 1, rate: 1, p99: 12 * ms})
	check("etcd", "can't tell: p99 of a durable append of 2300B is 10ms; etcd asks for less than 10ms",
		plant{policy: "buffer=0,sync=each", cpu: 1, rate: 1, p99: 10 * ms})
	check("etcd", "can't tell: p99 of a durable append of 2300B is not measured; etcd asks for less than 10ms",
		plant{policy: "buffer=0,sync=each", cpu: 1, rate: 1})
	check("redis-everysec", "fast enough: a power cut takes at most the last 1.01s; Redis with appendfsync everysec asks for at most 2s",
		plant{policy: "buffer=0,sync=1s", cpu: 1, rate: 1, sync: 10 * ms})
	check("redis-everysec", "not fast enough: a power cut takes at most the last 2.21s; Redis with appendfsync everysec asks for at most 2s",
		plant{policy: "buffer=0,sync=1s", cpu: 1, rate: 1, sync: 1101 * ms})
}

// TestAProgramIsKnownByItsName: in any case of letters, and without the setting's name.
func TestAProgramIsKnownByItsName(t *testing.T) {
	for name, want := range map[string]string{"ETCD": "etcd", "postgres": "postgres-commit", "PostgreSQL": "postgres-commit", "redis": "redis-everysec", "sqlite": "sqlite-full", "nats-always": "nats-always"} {
		if p, err := advise.ParsePreset(name); err != nil || p.Name != want {
			t.Errorf("%s is %v (%v), wanted %s", name, p, err, want)
		}
	}
}
