package renameio_test

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) { os.Exit(isolate.Tests{M: m}.Run()) }

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }
