package trial

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestEachTurnHasAControl: on a file of its own that is checked and removed.
func TestEachTurnHasAControl(t *testing.T) {
	for _, one := range []struct {
		policy         string
		turns, writers int
	}{{"buffer=4KiB", 3, 3}, {"buffer=0", 3, 1}, {"buffer=64KiB,sync=close", 2, 1}, {"buffer=64KiB,sync=group", 0, 3}, {"buffer=0,sync=each", 0, 1}} {
		policy, err := holdfast.ParsePolicy(one.policy)
		if err != nil {
			t.Fatal(err)
		}
		g := newWorkDir(t)
		m, err := Append{Policy: policy, RecordBytes: 100, Writers: one.writers, Records: 100, Stride: 1, Turns: one.turns, Control: 50}.Run(t.Context(), g)
		if err != nil {
			t.Fatalf("%s: %v", one.policy, err)
		}
		turns := max(1, one.turns)
		if len(m.Controls) != turns || m.Records != int64(100*turns) || m.Writer.Writes != m.Records || g.files != 2*turns {
			t.Errorf("%s: controls %v, %d files, %+v", one.policy, m.Controls, g.files, m)
		}
		for _, took := range m.Controls {
			if took <= 0 {
				t.Errorf("%s: a control took %v", one.policy, took)
			}
		}
		isEmpty(t, g.Dir())
	}
}

// TestControlDoesTheWorkOfThePolicy: it keeps as many bytes in memory as the policy does, and no more.
func TestControlDoesTheWorkOfThePolicy(t *testing.T) {
	check := func(buffer holdfast.Size, waits bool, want int64) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "file")
		p, err := newPlain(path, int(buffer), waits)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := p.Write(make([]byte, 3000)); err != nil {
				t.Fatal(err)
			}
		}
		if info, err := os.Stat(path); err != nil || info.Size() != want {
			t.Errorf("buffer %v, waits %v: %d bytes are in the file, want %d (%v)", buffer, waits, info.Size(), want, err)
		}
		if err := errors.Join(p.Flush(), p.Close()); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != 9000 {
			t.Errorf("buffer %v: %d bytes at the end (%v)", buffer, info.Size(), err)
		}
	}
	check(0, false, 9000)
	check(4*holdfast.KiB, false, 8192)
	check(64*holdfast.KiB, false, 0)
	check(64*holdfast.KiB, true, 9000)
}
