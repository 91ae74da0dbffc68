package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/timing"
)

// Copying is the study of a repetition of TLPI's exercises 13-1 to 13-3: a file is
// copied by read(2) and write(2) with buffers from a byte to a mebibyte, by the size
// of the file, with O_SYNC and its like, and on several file systems; it is written
// without reading; and a stdio stream is flushed and synced.
//
// In the clock: opening both files (the stage open), the loop of read and write
// (write), a sync at the end (sync), and closing (close). Before each run the page
// cache has nothing of the source, which is verified and kept with the trial; where
// that can't be had the run goes on, and the tables say so. Not in the clock: the
// source, which is made once, by the seed, and read by all trials through links; and
// the comparison of what was written with it.
//
// A copy that takes longer than its share of the time is a shorter one of the same
// buffer, from which the whole is predicted: see [stretch].
func Copying() Study {
	return Study{
		Name:      "copy",
		Question:  "what does the size of the buffer do to a copy, by the file's size, by syncing, and by file system",
		Source:    copyBufferSizes,
		Takes:     []string{TakesPart, TakesBuffer, TakesCache},
		Published: copyPublished(),
		Arms:      copyArms,
		Rounds:    copyRounds,
		Twin:      copyArm(twinBuffer),
		Flat:      true,
		Show:      showCopies,
		Across:    acrossCopies,
		Claims:    copyClaims(),
	}
}

// A Part is one of the study's.
type Part string

// The parts, by the names of the repetition; write and sync are exercises 13-2 and
// 13-3.
const (
	PartA     Part = "A"     // by the size of the file
	PartB     Part = "B"     // with O_SYNC
	PartC     Part = "C"     // 100 MiB, to be run on several file systems
	PartWrite Part = "write" // without reading
	PartSync  Part = "sync"  // fflush and fsync of a stdio stream
)

// Parts returns all of them.
func Parts() []Part { return []Part{PartA, PartB, PartC, PartWrite, PartSync} }

// ParsePart reads the name of a part.
func ParsePart(text string) (Part, error) {
	if p := Part(text); slices.Contains(Parts(), p) {
		return p, nil
	}
	return "", fmt.Errorf("%q is no part of a study; the study copy has A, B, C, write and sync", text)
}

// A copyCell is one way to copy, or to write: what its name tells.
type copyCell struct {
	form   timing.Form
	size   int64 // of the whole file
	buffer int64
}

const (
	beforeSize = ", "
	byBuffer   = " by "
)

func (c copyCell) name() string {
	return string(c.form) + beforeSize + holdfast.Size(c.size).String() + byBuffer + holdfast.Size(c.buffer).String()
}

// group is the same for cells that do the same work.
func (c copyCell) group() string { return string(c.form) + beforeSize + holdfast.Size(c.size).String() }

// copyCellOf reads the name of an arm; ok is false for one of another kind.
func copyCellOf(arm result.Cell) (c copyCell, ok bool) {
	at := strings.LastIndex(arm.Name, beforeSize)
	if at < 0 || arm.Twin != "" {
		return c, false
	}
	size, buffer, found := strings.Cut(arm.Name[at+len(beforeSize):], byBuffer)
	wide, err1 := holdfast.ParseSize(size)
	narrow, err2 := holdfast.ParseSize(buffer)
	c = copyCell{timing.Form(arm.Name[:at]), int64(wide), int64(narrow)}
	return c, found && err1 == nil && err2 == nil && slices.Contains(timing.Forms(), c.form)
}

// copyCells returns the run's arms that copy or write, in their order.
func copyCells(e Evidence) (cells []copyCell) {
	for _, arm := range e.Arms() {
		if c, ok := copyCellOf(arm); ok && e.have(arm.Name) {
			cells = append(cells, c)
		}
	}
	return cells
}

// The sizes of the files, as published: part A has the wholes of part C besides.
const (
	mib       = 1 << 20
	wholeSize = 100 * mib // of part C
	syncSize  = 1 * mib   // of part B
	writeSize = 32 * mib
)

// oddBuffer is the original's slip for 16384: every write but the first of four
// begins within a page.
const oddBuffer = 16284

// twinBuffer is that of the copy that is run twice.
const twinBuffer = 4096

func copyArm(buffer int64) string { return copyCell{timing.Copy, wholeSize, buffer}.name() }
func syncArm(buffer int64) string { return copyCell{timing.Synced, syncSize, buffer}.name() }
