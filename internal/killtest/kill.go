//go:build unix

// Package killtest kills processes of a test. It is for tests only.
package killtest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// Record is the size of the killed writer's records: the record's number.
const Record = 64

// After runs the test again, as a process that plays the part of the environment variable
// role. It kills the process after so many acknowledged records, and returns how many there
// were.
func After(t *testing.T, atLeast int64, role, path string, p holdfast.Policy) int64 {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(exe, "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), role+"="+path+"\n"+p.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acks := bufio.NewReader(out)
	var acknowledged int64
	for ; ; acknowledged++ {
		if acknowledged == atLeast {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := acks.ReadByte(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err == nil || acknowledged < atLeast {
		t.Fatalf("the writer ended by itself after %d records: %v", acknowledged, err)
	}
	return acknowledged
}
