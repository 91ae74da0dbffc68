package records

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// theWork is small enough to plant faults in by hand.
var theWork = work{goroutines: 3, each: 5, size: 40}

// written is a right file of theWork, record by record, the goroutines mixed.
func written() [][]byte {
	var file [][]byte
	for seq := range theWork.each {
		for _, g := range []int{1, 0, 2} {
			r := newRecord(theWork.size, g)
			r.number(seq)
			file = append(file, r)
		}
	}
	return file
}

func verifyFile(t *testing.T, file [][]byte) error {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(logPath(dir), bytes.Join(file, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return verify(rawRecords(dir, theWork), theWork)
}

func TestVerifyAcceptsAnyMixOfGoroutines(t *testing.T) {
	file := written()
	if err := verifyFile(t, file); err != nil {
		t.Error(err)
	}
	slices.SortStableFunc(file, func(a, b []byte) int {
		return int(record(a).goroutine()) - int(record(b).goroutine())
	})
	if err := verifyFile(t, file); err != nil {
		t.Error("one goroutine after the other:", err)
	}
}

func TestVerifyCatchesPlantedFaults(t *testing.T) {
	check := func(fault, want string, plant func(file [][]byte) [][]byte) {
		t.Helper()
		err := verifyFile(t, plant(written()))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", fault, err, want)
		}
	}
	check("first record lost", "lost", func(f [][]byte) [][]byte { return f[1:] })
	check("record lost amid", "lost", func(f [][]byte) [][]byte { return slices.Delete(f, 7, 8) })
	check("last record lost", "wrote 5 records, the file has 4", func(f [][]byte) [][]byte { return f[:len(f)-1] })
	check("all lost", "wrote 5 records, the file has 0", func([][]byte) [][]byte { return nil })
	check("duplicated at once", "duplicated", func(f [][]byte) [][]byte { return slices.Insert(f, 4, f[4]) })
	check("duplicated at the end", "duplicated", func(f [][]byte) [][]byte { return append(f, f[2]) })
	check("one lost, another twice", "duplicated", func(f [][]byte) [][]byte { f[3] = f[0]; return f })
	check("two of a goroutine swapped", "reordered", func(f [][]byte) [][]byte { f[3], f[6] = f[6], f[3]; return f })
	check("cut short", "torn: the file ends with 39 bytes", func(f [][]byte) [][]byte {
		f[len(f)-1] = f[len(f)-1][:39]
		return f
	})
	check("bytes lost amid", "torn", func(f [][]byte) [][]byte { f[5] = f[5][:17]; return f })
	check("a hole of zeros", "torn", func(f [][]byte) [][]byte { clear(f[6][20:]); return f })
	check("one byte changed", "torn", func(f [][]byte) [][]byte { f[8][21] ^= 1; return f })
	check("halves of two records of one goroutine", "torn", func(f [][]byte) [][]byte {
		copy(f[3][20:], f[6][20:])
		return f
	})
	check("halves of two goroutines' records", "torn", func(f [][]byte) [][]byte {
		copy(f[4][20:], f[5][20:])
		return f
	})
	check("a stranger's record", "belongs to no goroutine", func(f [][]byte) [][]byte {
		f[4] = newRecord(theWork.size, 3)
		return f
	})
}

// TestPeersReadersCatchDamage plants a fault in the logs that are read back with
// the peers' own readers.
func TestPeersReadersCatchDamage(t *testing.T) {
	g, _ := command.Find(windows(), "window/goroutines=8", "holdfast")
	for _, a := range g.Arms {
		if a.Do.read == nil {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			w, dir := a.Do.work, t.TempDir()
			w.goroutines, w.each = 2, 50
			if _, err := clock(dir, a.Do, w); err != nil {
				t.Fatal(err)
			}
			if err := verify(a.Do.read(dir, w), w); err != nil {
				t.Fatal("undamaged:", err)
			}
			r := newRecord(w.size, 1)
			r.number(20)
			damage(t, dir, r)
			if err := verify(a.Do.read(dir, w), w); err == nil {
				t.Error("verified a log with a damaged record")
			}
		})
	}
}

// damage changes one byte of rec in the one file under dir that holds it.
func damage(t *testing.T, dir string, rec []byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		at := bytes.Index(data, rec)
		if at < 0 {
			return nil
		}
		data[at+len(rec)/2] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
		return filepath.SkipAll
	})
	if err != nil {
		t.Fatal(err)
	}
}
