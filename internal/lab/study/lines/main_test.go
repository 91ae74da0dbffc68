package lines

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/internal/lab/study/studytest"
)

func TestMain(m *testing.M) { studytest.Main(m, Roles()) }

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }
