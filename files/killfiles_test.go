//go:build unix

package files_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/filetest"
	"github.com/holdfast-go/holdfast/internal/killtest"
)

// killedPaths is how many files a killed process writes to in turn: more than it
// may have open.
const killedPaths = 40

// killedAppender makes TestKilledAppendsLoseNoMoreThanTheirPolicy be the process
// that is killed: a directory and a policy, a line each.
const killedAppender = "HOLDFAST_TEST_KILLED_APPENDER"

func TestKilledAppendsLoseNoMoreThanTheirPolicy(t *testing.T) {
	if dir, policy, ok := strings.Cut(os.Getenv(killedAppender), "\n"); ok {
		t.Fatal(appendUntilKilled(dir, policy))
	}
	for _, p := range []holdfast.Policy{
		holdfast.Unbuffered(),
		holdfast.Buffered(holdfast.KiB),
		holdfast.Periodic(10 * time.Millisecond),
		holdfast.Durable(),
		holdfast.EachDurable(),
	} {
		t.Run(p.String(), func(t *testing.T) {
			dir := t.TempDir()
			acknowledged := killtest.After(t, 40*killedPaths, killedAppender, dir, p)
			for i := range killedPaths {
				got := filetest.ContentOf(t, pathIn(dir, i))
				of := (acknowledged + killedPaths - 1 - int64(i)) / killedPaths * killtest.Record
				if lost, bound := of-int64(len(got)), p.Loss().Process.Bytes; lost > int64(bound) {
					t.Errorf("file %d: %d bytes acknowledged, %d there: %d lost, the policy allows %v", i, of, len(got), lost, bound)
				}
				for at := 0; at+killtest.Record <= len(got); at += killtest.Record {
					if n := binary.LittleEndian.Uint64(got[at:]); n != uint64(at/killtest.Record*killedPaths+i) {
						t.Fatalf("file %d: record %d stands at byte %d", i, n, at)
					}
				}
			}
		})
	}
}

func pathIn(dir string, i int) string { return filepath.Join(dir, strconv.Itoa(i)) }

// appendUntilKilled appends numbered records to one file after the other and says so
// on stdout, a byte each.
func appendUntilKilled(dir, policy string) error {
	f, err := killedFiles(policy)
	if err != nil {
		return err
	}
	record := make([]byte, killtest.Record)
	for n := uint64(0); ; n++ {
		binary.LittleEndian.PutUint64(record, n)
		if err := f.Append(context.Background(), pathIn(dir, int(n%killedPaths)), record); err != nil {
			return err
		}
		if _, err := fmt.Fprint(os.Stdout, "+"); err != nil {
			return err
		}
	}
}

func killedFiles(policy string) (*files.Set, error) {
	p, err := holdfast.ParsePolicy(policy)
	if err != nil {
		return nil, err
	}
	return files.New(files.Options{Policy: p, Handles: 16})
}

// killedReplacer makes TestKilledReplacesLeaveOldOrNewWhole be the process that is
// killed.
const killedReplacer = "HOLDFAST_TEST_KILLED_REPLACER"

// TestKilledReplacesLeaveOldOrNewWhole kills a process that replaces the same files
// again and again, a batch at a time: a name has what the last acknowledged batch
// wrote, or what the one after it did, and always all of it.
func TestKilledReplacesLeaveOldOrNewWhole(t *testing.T) {
	if dir, policy, ok := strings.Cut(os.Getenv(killedReplacer), "\n"); ok {
		t.Fatal(replaceUntilKilled(dir, policy))
	}
	for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable(), holdfast.EachDurable()} {
		t.Run(p.String(), func(t *testing.T) {
			dir := t.TempDir()
			acknowledged := uint64(killtest.After(t, 20, killedReplacer, dir, p))
			for i := range killedPaths {
				got := filetest.ContentOf(t, pathIn(dir, i))
				if len(got) != killedSize {
					t.Fatalf("file %d has %d bytes", i, len(got))
				}
				batch := binary.LittleEndian.Uint64(got)
				if !bytes.Equal(got, killedContent(batch)) {
					t.Errorf("file %d is of no single batch", i)
				}
				if batch+1 != acknowledged && batch != acknowledged {
					t.Errorf("file %d is of batch %d, and %d were acknowledged", i, batch, acknowledged)
				}
			}
		})
	}
}

// killedSize is more than a page, so that a torn file would show.
const killedSize = 3*4096 + 8

func killedContent(batch uint64) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, batch), killedSize/8)
}

// replaceUntilKilled replaces all files by those of the next batch and says so on
// stdout.
func replaceUntilKilled(dir, policy string) error {
	f, err := killedFiles(policy)
	if err != nil {
		return err
	}
	for n := uint64(0); ; n++ {
		content := killedContent(n)
		_, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
			for i := range killedPaths {
				if !yield(files.Write{Path: pathIn(dir, i), Data: content, Mode: files.Replace}) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(os.Stdout, "+"); err != nil {
			return err
		}
	}
}
