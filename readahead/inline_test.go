package readahead_test

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestSingleBytesAreInlined asks the compiler: a call for each byte takes twice as long. ReadByte is
// as large as its budget allows (80 of 80 with Go 1.26).
func TestSingleBytesAreInlined(t *testing.T) {
	isolate.Once(t)
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Skipf("there is no compiler to ask: %v: %s", err, out)
	}
	if !bytes.Contains(out, []byte("can inline (*Reader).ReadByte")) {
		t.Error("ReadByte is too large for the compiler to inline")
	}
}
