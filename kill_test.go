//go:build unix

package holdfast_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/killtest"
)

// killedWriter is the name of the environment variable that makes the test below
// be the process that is killed: a path and a policy, a line each.
const killedWriter = "HOLDFAST_TEST_KILLED_WRITER"

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
			acknowledged := killtest.After(t, 300, killedWriter, path, p)
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lost := acknowledged*killtest.Record - int64(len(got))
			if bound := p.Loss().Process.Bytes; lost > int64(bound) {
				t.Errorf("%d bytes acknowledged, %d in the file: %d lost, the policy allows %v", acknowledged*killtest.Record, len(got), lost, bound)
			}
			for i := 0; i+killtest.Record <= len(got); i += killtest.Record {
				if n := binary.LittleEndian.Uint64(got[i:]); n != uint64(i/killtest.Record) {
					t.Fatalf("record %d is in the place of record %d", n, i/killtest.Record)
				}
			}
		})
	}
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
	record := make([]byte, killtest.Record)
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
