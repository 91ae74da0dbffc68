//go:build go1.25

package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/waltest"
)

// agrees compares Open's result with a reader's that was written from docs/wal.md alone. The
// error is Open's.
func agrees(files map[string][]byte, first uint64, records [][]byte, err error) error {
	byDocs, read, failed := waltest.Read(files)
	switch {
	case failed != nil && !errors.As(err, new(*DamageError)), failed == nil && err != nil:
		return fmt.Errorf("the page says %v, and Open %v", failed, err)
	case failed == nil && (byDocs != first || !slices.EqualFunc(read, records, bytes.Equal)):
		return fmt.Errorf("the page says %d records from %d, and Open %d from %d", len(read), byDocs, len(records), first)
	}
	return nil
}

// TestTheFormatIsThatOfTheDocs checks what no reader needs: zeros, times, sizes.
func TestTheFormatIsThatOfTheDocs(t *testing.T) {
	before := time.Now().Unix()
	files, records := aLog(t, true)
	if err := agrees(files, 1, records, nil); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range files {
		if strings.HasSuffix(name, segmentSuffix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	number, long := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	for n, name := range names {
		b := files[name]
		began := int64(number(b[56:]))
		if number(b[8:]) != 2 || int(number(b[12:])) != len(b) || long(b[32:]) != uint64(n+1) || long(b[48:]) != 1 {
			t.Fatalf("%s begins with %q", name, b[:96])
		}
		if began <= before || began > time.Now().Unix()+1 {
			t.Fatalf("%s began at %d, after %d", name, began, before)
		}
		if !bytes.Equal(b[:96], b[2048:2048+96]) || n > 0 && !bytes.Equal(b[:96], files[names[n-1]][512:512+96]) {
			t.Errorf("%s: a copy of its header is another", name)
		}
		for _, zeros := range [][2]int{{60, 64}, {88, 92}, {96, 512}, {512 + 96, 1024}, {1024 + 16, 2048}, {2048 + 96, 4096}} {
			if len(bytes.Trim(b[zeros[0]:zeros[1]], "\x00")) > 0 {
				t.Errorf("%s: bytes %d to %d are no zeros", name, zeros[0], zeros[1])
			}
		}
		if last := n == len(names)-1; last != (number(b[1024:]) != 0) || last == (number(b[512:]) != 0) {
			t.Errorf("%s: the note %x, the seal %x", name, b[1024:1040], b[512:520])
		}
	}
}

// TestOpenSealsWhatACrashHasLeft between the beginning of a segment and its seal: else its loss is not noticed.
func TestOpenSealsWhatACrashHasLeft(t *testing.T) {
	files, _ := aLog(t, false)
	third, fourth := "/log/"+segmentName(3), "/log/"+segmentName(4)
	seal := bytes.Clone(files[third][sealAt : sealAt+headerUsed])
	clear(files[third][sealAt : sealAt+headerUsed])
	d := newDisk(t, &fault.Image{Files: files})
	l, _, err := open(d, "/log", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	after := d.PowerCut(rand.New(rand.NewPCG(1, 1))).Files
	if got := after[third][sealAt : sealAt+headerUsed]; !bytes.Equal(got, seal) || !bytes.Equal(got, files[fourth][:headerUsed]) {
		t.Errorf("the seal is %x, want %x", got, seal)
	}
}
