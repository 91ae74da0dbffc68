package rotate

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// sharing makes TestProcessesShareALog be a process that writes records: a path, a policy, its number, and how many records,
// a line each.
const sharing = "HOLDFAST_TEST_SHARING_LOG"

// shareRecords is the number of records for the long run, which is made by
//
//	HOLDFAST_TEST_SHARED_RECORDS=165000 go test ./rotate -run ShareALog
const shareRecords = "HOLDFAST_TEST_SHARED_RECORDS"

// TestProcessesShareALog: real processes write numbered lines to one log that rotates and is compressed, while others are killed
// and begun again. Each record that a Write has accepted is there once, whole, and in its process's order. Of a killed
// process the record in its last Write may be missing or torn.
func TestProcessesShareALog(t *testing.T) {
	if what := os.Getenv(sharing); what != "" {
		share(strings.Split(what, "\n"))
		return
	}
	isolate.Once(t)
	records, err := strconv.Atoi(os.Getenv(shareRecords))
	long := err == nil
	if !long {
		records = 5000
	}
	for _, x := range []struct {
		processes int
		policy    string
		kills     bool
	}{
		{2, "buffer=64KiB,flush=20ms,sync=never", false},
		{2, "buffer=0,sync=never", true},
		{8, "buffer=16KiB,sync=100ms", false},
		{8, "buffer=0,sync=never", true},
	} {
		if !long && x.processes > 2 {
			continue
		}
		t.Run(fmt.Sprintf("%d %s kills=%v", x.processes, x.policy, x.kills), func(t *testing.T) { shareAmong(t, x.processes, records, x.policy, x.kills) })
	}
}

func shareAmong(t *testing.T, processes, records int, policy string, kills bool) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	if f, err := Open(path, Options{Shared: true}); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	start := func(id, records int) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcessesShareALog$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s\n%s\n%d\n%d", sharing, path, policy, id, records))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Error(err)
		}
		return cmd
	}
	var group sync.WaitGroup
	ended := make(chan struct{})
	for id := range processes {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := start(id, records/processes).Wait(); err != nil {
				t.Errorf("process %d: %v", id, err)
			}
		}()
	}
	killed := 0
	killer := make(chan struct{})
	go func() {
		defer close(killer)
		for kills {
			victim := start(1000+killed, 1<<30)
			select {
			case <-time.After(time.Duration(50+rand.IntN(150)) * time.Millisecond):
			case <-ended:
				kills = false
			}
			victim.Process.Kill()
			victim.Wait() // it was killed
			killed++
		}
	}()
	group.Wait()
	close(ended)
	<-killer
	// The next Open and its Close end what a killed process has begun.
	f, err := Open(path, Options{Shared: true, Compress: true, MaxSize: 256 * holdfast.KiB, Policy: holdfast.Unbuffered()})
	if err != nil {
		t.Fatal(err)
	}
	f.Rotate()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if left, _ := filepath.Glob(filepath.Join(dir, "app-*.log")); len(left) == 0 {
			break
		}
	}
	if err := errors.Join(f.Err(), f.Close()); err != nil {
		t.Error(err)
	}
	judge(t, dir, processes, records/processes, killed)
}

// share is one process.
func share(what []string) {
	policy, err := holdfast.ParsePolicy(what[1])
	if err != nil {
		panic(err)
	}
	id, _ := strconv.Atoi(what[2])
	records, _ := strconv.Atoi(what[3])
	f, err := Open(what[0], Options{Shared: true, Policy: policy, MaxSize: 256 * holdfast.KiB, Compress: true, OnError: func(e *Error) { panic(e) }})
	if err != nil {
		panic(err)
	}
	acks, err := os.Create(filepath.Join(filepath.Dir(what[0]), fmt.Sprintf("acked.%d", id)))
	if err != nil {
		panic(err)
	}
	for i := range records {
		if _, err := f.Write(shareRecord(id, i)); err != nil {
			panic(err)
		}
		if _, err := acks.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(i+1)), 0); err != nil {
			panic(err)
		}
	}
	if err := f.Close(); err != nil {
		panic(err)
	}
}

// shareRecord is a line of 70 to 130 bytes.
func shareRecord(id, i int) []byte {
	return fmt.Appendf(nil, "<%d %d %s>\n", id, i, strings.Repeat("x", 60+(i*7+id)%60))
}

func judge(t *testing.T, dir string, processes, records, killed int) {
	next := map[int]int{} // by process: the number of its next record
	pieces, rotations := 0, 0
	names, err := filepath.Glob(filepath.Join(dir, "app*.log*")) // in the order of the rotations, app.log last
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, packed) {
			rotations++
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err == nil {
				data, err = io.ReadAll(z)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if filepath.Base(name) != "app.log" {
			t.Errorf("%s is left", name)
		}
		for line := range bytes.Lines(data) {
			var id, i int
			if n, _ := fmt.Sscanf(string(line), "<%d %d ", &id, &i); n != 2 || !bytes.Equal(line, shareRecord(id, i)) {
				pieces++
				continue
			}
			if i != next[id] {
				t.Errorf("%s: process %d has record %d, want %d", filepath.Base(name), id, i, next[id])
			}
			next[id] = i + 1
		}
	}
	for id := range processes {
		if next[id] != records {
			t.Errorf("process %d: %d records of %d", id, next[id], records)
		}
	}
	for k := range killed {
		id := 1000 + k
		ack, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("acked.%d", id)))
		if err != nil || len(ack) < 8 {
			continue // it was killed at its beginning
		}
		if acked := int(binary.LittleEndian.Uint64(ack)); next[id] < acked || next[id] > acked+1 {
			t.Errorf("killed process %d: %d records, %d were acknowledged", id, next[id], acked)
		}
	}
	if pieces > killed {
		t.Errorf("%d lines are pieces, and %d processes were killed", pieces, killed)
	}
	if rotations == 0 {
		t.Error("nothing was rotated")
	}
	t.Logf("%d rotations, %d processes killed, %d pieces", rotations, killed, pieces)
}
