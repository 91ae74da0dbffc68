package holdfast_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }
