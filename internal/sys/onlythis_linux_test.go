package sys

import (
	"strings"
	"testing"
)

// onlyThis is the flag that runs this test alone.
func onlyThis(t *testing.T) string {
	return "-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
}
