//go:build unix

package holdfast_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// killedWriter is the name of the environment variable that makes the test below
// be the process that is killed: a path and a policy, a line each.
const killedWriter = "HOLDFAST_TEST_KILLED_WRITER"

// killRecord is the size of the killed writer's records: the record's number.
const killRecord = 64

// TestKilledProcessLosesNoMoreThanItsPolicy kills a writing process with SIGKILL
// and holds what the file has against what the process had acknowledged, which
// it did through a pipe: outside of what the kill destroys.
func TestKilledProcessLosesNoMoreThanItsPolicy(t *testing.T) {
	if path, policy, ok := strings.Cut(os.Getenv(killedWriter), "\n"); ok {
		t.Fatal(writeUntilKilled(path, policy))
	}
	for _, p := range []holdfast.Policy{
		holdfast.Unbuffered(),
		holdfast.Buffered(4 * holdfast.KiB),
		holdfast.Buffered(64 * holdfast.KiB),
		holdfast.Periodic(10 * time.Millisecond),
		holdfast.Durable(),
		holdfast.EachDurable(),
	} {
		t.Run(p.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			acknowledged := killAfter(t, 300, killedWriter, path, p)
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lost := acknowledged*killRecord - int64(len(got))
			if bound := p.Loss().Process.Bytes; lost > int64(bound) {
				t.Errorf("%d bytes acknowledged, %d in the file: %d lost, the policy allows %v", acknowledged*killRecord, len(got), lost, bound)
			}
			for i := 0; i+killRecord <= len(got); i += killRecord {
				if n := binary.LittleEndian.Uint64(got[i:]); n != uint64(i/killRecord) {
					t.Fatalf("record %d is in the place of record %d", n, i/killRecord)
				}
			}
		})
	}
}

// killAfter runs the test again, as a process that is told what to do by the
// environment variable role, kills it when it has acknowledged so many records, and
// returns how many it did acknowledge.
func killAfter(t *testing.T, atLeast int64, role, path string, p holdfast.Policy) int64 {
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

// writeUntilKilled writes numbered records and says so on stdout, a byte each.
func writeUntilKilled(path, policy string) error {
	p, err := holdfast.ParsePolicy(policy)
	if err != nil {
		return err
	}
	w, err := holdfast.Create(path, p)
	if err != nil {
		return err
	}
	record := make([]byte, killRecord)
	for n := uint64(0); ; n++ {
		binary.LittleEndian.PutUint64(record, n)
		if _, err := w.Write(record); err != nil {
			return err
		}
		if _, err := fmt.Fprint(os.Stdout, "+"); err != nil {
			return err
		}
	}
}
