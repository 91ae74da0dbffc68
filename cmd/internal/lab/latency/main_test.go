package latency

import (
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) { studytest.Main(m, Roles) }

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }
