package holdfast_test

import (
	"bytes"
	"os/exec"
	"testing"
)

// TestSingleBytesAreInlined asks the compiler: a call for each byte takes twice as
// long. ReadByte is as large as its budget allows (80 of 80 with Go 1.26); WriteByte
// is a call of assembly, and must not become two.
func TestSingleBytesAreInlined(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m", ".", "./readahead").CombinedOutput()
	if err != nil {
		t.Skipf("there is no compiler to ask: %v: %s", err, out)
	}
	for _, method := range []string{"(*Reader).ReadByte", "(*Lane).WriteByte"} {
		if !bytes.Contains(out, []byte("can inline "+method)) {
			t.Errorf("%s is too large for the compiler to inline", method)
		}
	}
}
