package studytest

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) { Main(m, nil) }

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }
