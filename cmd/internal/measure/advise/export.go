package advise

import (
	"bytes"
	"encoding/json"
	"io"
	"math"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
)

// JSON writes the recommendation as one JSON value.
func (r Recommendation) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false) // loss<=1s
	out := struct {
		Verdict Verdict `json:"verdict"`
		Recommendation
		Go       string   `json:"go,omitempty"`
		Cautions []string `json:"cautions,omitempty"`
	}{Verdict: r.Verdict(), Recommendation: r, Cautions: r.cautions()}
	if r.Advised != nil {
		out.Go = GoLine(r.Advised.Policy)
	}
	return e.Encode(out)
}

// MarshalText returns the need's text.
func (n Need) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// MarshalText returns the term's text.
func (t Term) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// keys name the value of a finding with its unit.
func keys() map[Unit]string {
	return map[Unit]string{Time: "value_ns", Bytes: "value_bytes", Records: "value_per_s", Stream: "value_bytes_per_s", Share: "value_cpu_percent"}
}

// MarshalJSON writes the value under a key that carries its unit.
func (f Finding) MarshalJSON() ([]byte, error) {
	out := map[string]any{"term": f.Term, "verdict": f.Verdict, "how": f.How}
	if f.Value >= 0 {
		scale := 1.0
		if f.Unit == Share {
			scale = 100
		}
		out[keys()[f.Unit]], out["best_"+keys()[f.Unit]] = float64(f.Value)/scale, float64(f.Best)/scale
	}
	if m := f.Margin(); !math.IsNaN(m) {
		out["margin"] = figure.Number(m)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(out)
	return b.Bytes(), err
}
