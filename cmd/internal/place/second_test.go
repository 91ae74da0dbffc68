package place

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// TestReportsOfASecondProcessAreBytes: bytes pass the command as they are, though a terminal would
// take some of them for commands. An error of the work is one of the command.
func TestReportsOfASecondProcessAreBytes(t *testing.T) {
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	failed := errors.New("failed")
	roles := map[string]study.Role{"report": func(_ context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
		asked, err := io.ReadAll(stdin)
		if err != nil || string(asked) != "asked" || strings.Join(args, " ") != "one two" {
			t.Errorf("it was asked %q with %q, %v", asked, args, err)
		}
		if _, err := stdout.Write(all); err != nil {
			t.Error(err)
		}
		return failed
	}}
	var got bytes.Buffer
	err := cli.Run(t.Context(), NewSecond(roles), []string{"--", "report", "one", "two"}, strings.NewReader("asked"), &got, io.Discard)
	if !errors.Is(err, failed) || !bytes.Equal(got.Bytes(), all) {
		t.Errorf("%v, and %d bytes: %q", err, got.Len(), got.Bytes())
	}
}
