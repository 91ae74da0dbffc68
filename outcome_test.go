package holdfast

import (
	"strings"
	"testing"
)

func TestOutcomeIsText(t *testing.T) {
	for o, name := range outcomeNames {
		if text, err := Outcome(o).MarshalText(); err != nil || string(text) != name || Outcome(o).String() != name {
			t.Errorf("%d: %s, %v", o, text, err)
		}
	}
	for _, o := range []Outcome{-1, Outcome(len(outcomeNames))} {
		if text, err := o.MarshalText(); err == nil || !strings.HasPrefix(o.String(), "Outcome(") {
			t.Errorf("%d: %s, %s", o, o, text)
		}
	}
}
