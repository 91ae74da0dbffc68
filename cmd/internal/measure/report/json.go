package report

import (
	"encoding/json"
	"io"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/figure"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A document is the JSON document of a run's figures.
type document struct {
	Kind    string              `json:"kind"` // figures
	Version int                 `json:"figures_version"`
	Header  result.Header       `json:"header"`
	Resumed []result.Resumption `json:"resumed,omitempty"`
	End     *result.End         `json:"end"`
	Missing string              `json:"not_complete,omitempty"` // what is missing from the run
	Advice  *adviceDocument     `json:"advice,omitempty"`
	Figures figure.Figures      `json:"figures"`
	Losses  []lossDocument      `json:"losses"`
}

type adviceDocument struct {
	Policy   holdfast.Policy `json:"policy"`
	Sentence string          `json:"sentence"`
	Rule     string          `json:"rule,omitempty"`
}

// A lossDocument is the largest loss at a crash, in words.
type lossDocument struct {
	Policy  holdfast.Policy `json:"policy"`
	Process string          `json:"lost_when_process_dies"`
	Power   string          `json:"lost_when_machine_dies"`
}

// figuresVersion is the version of the document's form. It increases when a reader of older documents
// would misread a new one.
//
// Version 2: a cost is the net time of writing alone.
const figuresVersion = 2

// encode writes a document with indentation, so that people can read it too.
func encode(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(document)
}
