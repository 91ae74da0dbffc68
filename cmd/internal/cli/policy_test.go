package cli

import (
	"fmt"
	"strings"
	"testing"
)

func TestPolicyNamesAreGuessed(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		_, err := ParsePolicy(text)
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %q", text, got, want)
		}
	}
	check("durable", "<nil>")
	check("buffer=64KiB,sync=1s", "<nil>")
	check("durabel", "did you mean durable?")
	check("Unbuffered", "did you mean unbuffered?")
	check("buffered", "did you mean buffered=64KiB?")
	check("never", "did you mean buffer=64KiB,sync=never?")
	check("buffer", `field "buffer" has no value`)
	check("zz", "give a name alone")
	check("buffer=64KiB,sync=grup", `"grup" is not never`)
}
