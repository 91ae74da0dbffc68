//go:build go1.25

package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTheFormatIsThatOfTheDocs reads a log by the tables of docs/wal.md, and by nothing of this
// package: logs of today must be read by every later version.
func TestTheFormatIsThatOfTheDocs(t *testing.T) {
	before := time.Now().Unix()
	files, records := aLog(t, true)
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".wal") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	sum := func(id, b []byte) uint32 {
		return crc32.Checksum(append(bytes.Clone(id), b...), crc32.MakeTable(crc32.Castagnoli))
	}
	var id []byte
	number, long := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	next, marks := uint64(1), 0
	for n, name := range names {
		b := files[name]
		if n == 0 {
			id = b[16:32]
		}
		epoch, began := long(b[32:]), int64(number(b[56:]))
		switch {
		case string(b[:8]) != "hfastwal" || number(b[8:]) != 1 || int(number(b[12:])) != len(b) || !bytes.Equal(b[16:32], id):
			t.Fatalf("%s begins with %q", name, b[:64])
		case name != fmt.Sprintf("/log/%016x.wal", epoch) || epoch != uint64(n+1) || long(b[40:]) != next || long(b[48:]) != 1:
			t.Fatalf("%s: epoch %d, first record %d, first index %d", name, epoch, long(b[40:]), long(b[48:]))
		case began <= before || began > time.Now().Unix()+1:
			t.Fatalf("%s began at %d, after %d", name, began, before)
		case number(b[60:]) != sum(nil, b[:60]) || len(bytes.Trim(b[64:4096], "\x00")) > 0:
			t.Fatalf("%s: the checksum of the header, or the zeros behind it", name)
		}
		at := 4096
		for at+32 <= len(b) && long(b[at+8:]) == epoch {
			f := b[at:]
			body, count := f[32:32+number(f[4:])], int(number(f[24:]))
			end := (32 + len(body) + 7) / 8 * 8
			if number(f) != sum(id, f[4:32+len(body)]) || long(f[16:]) != next || int(number(f[28:])) > at || len(bytes.Trim(f[32+len(body):end], "\x00")) > 0 {
				t.Fatalf("%s: the frame at %d, of record %d", name, at, next)
			}
			if count == 0 {
				marks++
				if len(body) != 8 || long(body) != 1 || marks > 1 {
					t.Fatalf("%s: the mark at %d says %x", name, at, body)
				}
			}
			data := body[min(len(body), 4*count):]
			for i := range count {
				size := number(body[4*i:])
				if !bytes.Equal(data[:size], records[next-1]) {
					t.Fatalf("%s: record %d is %q, want %q", name, next, data[:size], records[next-1])
				}
				data, next = data[size:], next+1
			}
			at += end
		}
	}
	if int(next-1) != len(records) || marks != 1 {
		t.Errorf("%d of %d records and %d marks", next-1, len(records), marks)
	}
}
