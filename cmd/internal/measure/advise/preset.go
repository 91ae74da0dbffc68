package advise

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
)

// A Preset is a well-known program's requirement of a disk, as a need. docs/advise.md has the table of
// all presets, with the sources.
type Preset struct {
	Name     string
	Program  string
	Need     Need
	Load     Load
	Policies []holdfast.Policy // with the same promise as the program's setting
}

// durable are the policies whose Write returns when its bytes are durable.
var durable = []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable()}

// presets are in the order of the table.
var presets = []Preset{
	{"etcd", "etcd", Need{atMost(Loss, 0), below(P99, 10*time.Millisecond)}, Load{2300, 1}, durable},
	{"redis-everysec", "Redis with appendfsync everysec", Need{atMost(Loss, 2*time.Second)}, Load{128, 1}, []holdfast.Policy{{Sync: holdfast.SyncEvery(time.Second)}}},
	{"postgres-commit", "a PostgreSQL commit", Need{atMost(Loss, 0), below(P99, 10*time.Millisecond)}, Load{8192, 1}, durable},
	{"postgres-async", "PostgreSQL with synchronous_commit=off", Need{atMost(Loss, 600*time.Millisecond)}, Load{8192, 1}, []holdfast.Policy{holdfast.Periodic(200 * time.Millisecond)}},
	{"mongodb-journal", "MongoDB's journal", Need{atMost(Loss, 200*time.Millisecond)}, Load{128, 1}, []holdfast.Policy{holdfast.Periodic(100 * time.Millisecond)}},
	{"kafka", "a Kafka producer without replicas", Need{{Of: Rate, Unit: Records, Limit: 821557}}, Load{100, 1}, []holdfast.Policy{holdfast.Buffered(64 * holdfast.KiB)}},
	{"rabbitmq-confirms", "RabbitMQ with publisher confirms", Need{atMost(Loss, 0), below(P99, 300*time.Millisecond)}, Load{128, 64}, durable},
	{"nats-always", "NATS JetStream with sync_interval: always", Need{atMost(Loss, 0), below(P99, 10*time.Millisecond)}, Load{128, 1}, durable},
	{"sqlite-full", "SQLite with synchronous=FULL", Need{atMost(Loss, 0), {Of: Rate, Unit: Records, Limit: 60}}, Load{4120, 1}, durable},
}

func atMost(q Quantity, d time.Duration) Term { return Term{Of: q, Unit: Time, Limit: int64(d)} }

func below(q Quantity, d time.Duration) Term {
	return Term{Of: q, Strict: true, Unit: Time, Limit: int64(d)}
}

// PresetNames lists the names of all presets.
func PresetNames() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.Name)
	}
	return names
}

// ParsePreset returns the preset of a name, in any case of letters. A program's own name is its first preset, which is
// its default: postgres is postgres-commit.
func ParsePreset(name string) (Preset, error) {
	asked := strings.ToLower(strings.TrimSpace(name))
	if asked == "postgresql" {
		asked = "postgres"
	}
	for _, p := range presets {
		if program, _, _ := strings.Cut(p.Name, "-"); asked == p.Name || asked == program {
			return p, nil
		}
	}
	known := PresetNames()
	for _, p := range presets {
		program, _, _ := strings.Cut(p.Name, "-")
		known = append(known, program)
	}
	if near := humanize.Near(asked, known); near != "" {
		return Preset{}, fmt.Errorf("%q is not a known program; did you mean %q?", name, near)
	}
	return Preset{}, fmt.Errorf("%q is not a known program; use %s", name, strings.Join(PresetNames(), ", "))
}

// String returns the preset's name.
func (p Preset) String() string { return p.Name }

// Verdict says in one line whether the disk is fast enough for the preset.
func (p Preset) Verdict(r Recommendation) string {
	verdict := map[Verdict]string{Met: "fast enough", NotMet: "not fast enough", NotKnown: "can't tell"}[r.Verdict()]
	j := r.Shown()
	var found, asked []string
	for _, f := range j.Findings {
		if f.Term.Limit == 0 && f.Verdict == Met {
			continue // the adjective already says fast enough or not
		}
		found = append(found, f.sentence(j.Policy, r.Load.RecordBytes))
		asked = append(asked, f.Term.asked())
	}
	return fmt.Sprintf("%s: %s; %s asks for %s", verdict, strings.Join(found, ", "), p.Program, strings.Join(asked, ", "))
}

// sentence writes a finding as a clause.
func (f Finding) sentence(p holdfast.Policy, record int64) string {
	switch f.Term.Of {
	case Loss:
		return "a power cut takes " + f.most()
	case Crash:
		return "the end of the process takes " + f.most()
	case Rate:
		return f.Text() + " are written"
	case CPU, Memory:
		return fmt.Sprintf("%v is %s", f.Term.Of, f.Text())
	}
	kind := "an append"
	if p.Loss().Power.None() {
		kind = "a durable append"
	}
	return fmt.Sprintf("%v of %s of %v is %s", f.Term.Of, kind, holdfast.Size(record), f.Text())
}

// most returns the bound of the loss in words.
func (f Finding) most() string {
	switch {
	case f.Value <= 0:
		return f.Text()
	case f.Unit == Time:
		return "at most the last " + f.Text()
	}
	return "at most " + f.Text()
}

// asked returns the limit in words.
func (t Term) asked() string {
	limit := t.Unit.text(t.Limit)
	switch {
	case t.Of == Rate:
		return "at least " + limit
	case t.Strict:
		return "less than " + limit
	}
	return "at most " + limit
}
