package isolate

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Tests{M: m}.Run()) }

func TestUnknownCommandIsRefused(t *testing.T) { RefusesUnknownCommand(t) }
