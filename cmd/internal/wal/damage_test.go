package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	log "github.com/holdfast-go/holdfast/wal"
)

// A frameAt is where a frame stands, by the format of docs/wal.md, and its records.
type frameAt struct {
	at, end      int
	index, count uint64
}

// A damagedLog is a log of three segments: the first ends with records that TruncateAfter has removed, and the last
// begins behind a mark of TruncateBefore.
type damagedLog struct {
	t      *testing.T
	closed bool
	files  map[string][]byte
	names  []string
	frames [3][]frameAt
}

const firstLive, lastLive, cutAfter = 3, 40, 8

func newDamagedLog(t *testing.T, closed bool) *damagedLog {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	l, _, err := log.Open(dir, log.Options{Policy: holdfast.Durable(), SegmentSize: 8 * holdfast.KiB})
	if err != nil {
		t.Fatal(err)
	}
	add := func(last uint64, what string) {
		for err == nil && l.Last() < last {
			one := fmt.Appendf(nil, "%s %d %s", what, l.Last()+1, strings.Repeat(".", 150))
			two := fmt.Appendf(nil, "%s %d %s", what, l.Last()+2, strings.Repeat(".", 149))
			_, err = l.Append(one, two)
		}
	}
	add(12, "old")
	err = errors.Join(err, l.TruncateAfter(cutAfter))
	add(14, "new")
	err = errors.Join(err, l.TruncateBefore(firstLive))
	add(lastLive, "new")
	if err != nil {
		t.Fatal(err)
	}
	d := &damagedLog{t: t, closed: closed, files: map[string][]byte{}}
	if closed {
		err = l.Close()
	} else {
		defer l.Close()
	}
	for epoch := range 3 {
		d.names = append(d.names, fmt.Sprintf("%016x.wal", epoch+1))
		data, failed := os.ReadFile(filepath.Join(dir, d.names[epoch]))
		if err = errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		d.files[d.names[epoch]] = data
		for at := 4096; bytes.Equal(data[at+8:at+12], data[64:68]); {
			number := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(data[at+i:])) }
			f := frameAt{at, at + (32+int(number(4))+7)/8*8, binary.LittleEndian.Uint64(data[at+16:]), number(12)}
			d.frames[epoch] = append(d.frames[epoch], f)
			at = f.end
		}
	}
	if n := len(d.frames[2]); n < 4 || len(d.frames[1]) < 4 {
		t.Fatalf("frames %v", d.frames)
	}
	return d
}

// lost returns the live records of a segment's frames for which is true.
func (d *damagedLog) lost(segment int, is func(f frameAt) bool) (lost []uint64) {
	for _, f := range d.frames[segment] {
		for i := f.index; is(f) && i < f.index+f.count; i++ {
			if i >= firstLive && (segment > 0 || i <= cutAfter) {
				lost = append(lost, i)
			}
		}
	}
	return lost
}

// check damages a copy of the log, and compares verify, cat, repair and Open with the real loss. Torn is the end of a log that
// was not closed.
func (d *damagedLog) check(what string, damaged, torn bool, lost []uint64, damage func(files map[string][]byte)) {
	t := d.t
	t.Helper()
	files := map[string][]byte{}
	for name, data := range d.files {
		files[name] = bytes.Clone(data)
	}
	damage(files)
	dir := filepath.Join(t.TempDir(), "log")
	err := os.Mkdir(dir, 0o700)
	for name, data := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	var whole []string
	prefix := -1
	for i := uint64(firstLive); i <= lastLive; i++ {
		switch {
		case !slices.Contains(lost, i):
			what := "new"
			if i <= cutAfter {
				what = "old"
			}
			whole = append(whole, fmt.Sprintf("%s %d ", what, i))
		case prefix < 0 && len(whole) > 0:
			prefix = len(whole)
		}
	}
	if prefix < 0 {
		prefix = len(whole)
	}
	holds := func(command string, want []string, code, wantCode int, out, talk string) {
		t.Helper()
		lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
		if len(lines) != len(want) || code != wantCode {
			t.Errorf("closed=%v, %s: %s: code %d with %d records, want %d with %d\n%s", d.closed, what, command, code, len(lines), wantCode, len(want), talk)
			return
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, want[i]) {
				t.Errorf("closed=%v, %s: %s: %.20q, want %q", d.closed, what, command, line, want[i])
				return
			}
		}
	}
	bad := 0
	if damaged {
		bad = 1
	}
	out, talk, code := run("cat", dir)
	holds("cat", whole, code, bad, out, talk)
	out, talk, code = run("verify", dir)
	if code != bad || !strings.Contains(out, fmt.Sprintf("%d records from ", len(whole))) || strings.Contains(out, "torn") != torn {
		t.Errorf("closed=%v, %s: verify: code %d, want %d for %d records\n%s%s", d.closed, what, code, bad, len(whole), out, talk)
	}
	if len(lost) > 0 && damaged && !strings.Contains(talk, fmt.Sprintf("where record %d should be", lost[0])) {
		t.Errorf("closed=%v, %s: not named: record %d\n%s", d.closed, what, lost[0], talk)
	}
	to := filepath.Join(t.TempDir(), "new")
	_, talk, code = run("repair", dir, to)
	left := 0
	if prefix < len(whole) {
		left = 1
	}
	if code != left {
		t.Errorf("closed=%v, %s: repair of %d of %d: code %d\n%s", d.closed, what, prefix, len(whole), code, talk)
	}
	out, talk, code = run("cat", to)
	holds("repaired", whole[:prefix], code, 0, out, talk)
	l, _, err := log.Open(dir, log.Options{SegmentSize: 8 * holdfast.KiB})
	if (err != nil) != damaged || damaged && !errors.As(err, new(*log.DamageError)) {
		t.Errorf("closed=%v, %s: Open: %v", d.closed, what, err)
	}
	if err != nil {
		return
	}
	if l.Last()+1-l.First() != uint64(len(whole)) {
		t.Errorf("closed=%v, %s: Open: %d to %d", d.closed, what, l.First(), l.Last())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestEachByteOfALog damages each kind of byte of each segment, and compares with the real loss.
func TestEachByteOfALog(t *testing.T) {
	for _, closed := range []bool{true, false} {
		d := newDamagedLog(t, closed)
		for s, name := range d.names {
			flip := func(at int) func(map[string][]byte) {
				return func(files map[string][]byte) { files[name][at] ^= 0x10 }
			}
			zero := func(at, end int) func(map[string][]byte) {
				return func(files map[string][]byte) { clear(files[name][at:end]) }
			}
			none := func(frameAt) bool { return false }
			check := func(what string, damaged bool, lost []uint64, damage func(map[string][]byte)) {
				t.Helper()
				d.check(fmt.Sprintf("segment %d: %s", s+1, what), damaged, false, lost, damage)
			}
			for what, at := range map[string]int{"magic": 0, "version": 8, "size": 13, "id": 20, "epoch": 32, "first": 40, "low": 48, "key": 66, "before": 72, "sum": 92} {
				check(what, true, nil, flip(at))
			}
			for what, at := range map[string]int{"page": 300, "seal": 550, "note": 1030, "copy": 2050} {
				check(what, false, nil, flip(at))
			}
			all := d.lost(s, func(frameAt) bool { return true })
			if s > 0 {
				check("no page", true, nil, zero(0, 4096))
			} else {
				check("no page", true, all, zero(0, 4096))
			}
			check("empty", true, all, func(files map[string][]byte) { files[name] = nil })
			check("missing", true, all, func(files map[string][]byte) { delete(files, name) })
			check("a byte short", true, nil, func(files map[string][]byte) { files[name] = files[name][:8191] })
			n := len(d.frames[s])
			for i := range n {
				f := d.frames[s][i]
				live := d.lost(s, func(o frameAt) bool { return o == f })
				torn := !closed && s == 2 && i == n-1 // nothing proves that it was durable
				removed := s == 0 && f.index > cutAfter
				mark := f.count == 0
				if i > 0 && i < n-1 && i != n/2 && !mark {
					continue
				}
				for field, at := range map[string]int{"checksum": 0, "length": 4, "tag": 8, "count": 12, "index": 16, "durable": 24, "check": 28, "body": 33, "data": 32 + 7} {
					counted := torn && (at == 0 || at >= 32) // else the header does not say that it is one
					d.check(fmt.Sprintf("segment %d, frame %d of %d: %s", s+1, i, n, field), !torn && !removed, counted, live, flip(f.at+at))
				}
			}
			last := d.frames[s][n-1]
			behind := d.lost(s, func(f frameAt) bool { return f.end > (last.end-1)&^511 })
			if s > 0 && (closed || s < 2) {
				check("its last block", true, behind, zero((last.end-1)&^511, last.end))
			}
			if last.end+600 < 8192 {
				check("ground", false, d.lost(s, none), flip(last.end+512))
			}
		}
	}
}
