package holdfast_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

func TestOutcomeIsText(t *testing.T) {
	names := []string{"untouched", "partial", "written", "durable", "uncertain"}
	for i, name := range names {
		o := holdfast.Outcome(i)
		if text, err := o.MarshalText(); err != nil || string(text) != name || o.String() != name {
			t.Errorf("%d: %s, %v", i, text, err)
		}
	}
	for _, o := range []holdfast.Outcome{-1, holdfast.Outcome(len(names))} {
		if text, err := o.MarshalText(); err == nil || !strings.HasPrefix(o.String(), "Outcome(") {
			t.Errorf("%d: %s, %s", o, o, text)
		}
	}
}
