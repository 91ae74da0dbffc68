//go:build unix

package wal_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/killtest"
	"github.com/holdfast-go/holdfast/wal"
)

// killedWriter makes TestKilledLogLosesNoMoreThanItsPolicy be the process that is killed: a
// directory and a policy, a line each.
const killedWriter = "HOLDFAST_TEST_KILLED_LOG"

func TestKilledLogLosesNoMoreThanItsPolicy(t *testing.T) {
	if dir, policy, ok := strings.Cut(os.Getenv(killedWriter), "\n"); ok {
		t.Fatal(appendUntilKilled(dir, policy))
	}
	for _, p := range []holdfast.Policy{
		holdfast.Unbuffered(), holdfast.Buffered(holdfast.KiB), holdfast.Periodic(10 * time.Millisecond), holdfast.Durable(), holdfast.EachDurable(),
	} {
		t.Run(p.String(), func(t *testing.T) {
			dir := t.TempDir()
			var acknowledged int64
			for range 2 { // the second one goes on with what the first has left
				before := acknowledged
				acknowledged = before + killtest.After(t, 150, killedWriter, dir, p)
				l, found, err := wal.Open(dir, wal.Options{SegmentSize: 8 * holdfast.KiB})
				if err != nil {
					t.Fatal(err)
				}
				const size = killtest.Record + 40 // in the segment
				lost := max(0, (acknowledged-int64(found.Last))*size)
				if bound := p.Loss().Process.Bytes; lost > int64(bound) {
					t.Errorf("%d of %d records are there: %d bytes lost, the policy allows %v", found.Last, acknowledged, lost, bound)
				}
				for r, err := range l.Records(1) {
					if err != nil || binary.LittleEndian.Uint64(r.Data) != r.Index {
						t.Fatal(r.Index, err)
					}
				}
				acknowledged = int64(found.Last)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// appendUntilKilled appends records that hold their index, and says so on stdout, a byte
// each.
func appendUntilKilled(dir, policy string) error {
	p, err := holdfast.ParsePolicy(policy)
	if err != nil {
		return err
	}
	l, _, err := wal.Open(dir, wal.Options{Policy: p, SegmentSize: 8 * holdfast.KiB})
	if err != nil {
		return err
	}
	record := make([]byte, killtest.Record)
	for {
		binary.LittleEndian.PutUint64(record, l.Last()+1)
		if _, err := l.Append(record); err != nil {
			return err
		}
		if _, err := os.Stdout.Write([]byte{'.'}); err != nil {
			return err
		}
	}
}
