package lab

import (
	"github.com/holdfast-go/holdfast/internal/isolate"

	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

func TestMain(m *testing.M) { studytest.Main(m, Roles()) }

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }
