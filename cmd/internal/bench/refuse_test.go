package bench

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) {
	if log := os.Getenv(asRecorder); log != "" {
		if err := record(os.Args, log); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }
