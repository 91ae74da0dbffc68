// Package copying is the study of a repetition of TLPI's exercises 13-1 to 13-3. A file
// is copied by read(2) and write(2) with buffers from a byte to a mebibyte. It is
// copied by the size of the file, with O_SYNC and its like, and on several file
// systems. It is written without reading too, and a stdio stream is flushed and synced.
//
// In the clock: opening both files (the stage open), the loop of read and write
// (write), a sync at the end (sync), and closing (close). Before each run the page
// cache has nothing of the source, which is verified and kept with the trial. Where
// that can't be had the run goes on, and the tables say so. Two things are not in
// the clock. The source is made once, by the seed, and read by all trials through
// links. The written bytes are compared with it.
//
// A copy that would take longer than its share of the time is a shorter one of the
// same buffer. The whole is predicted from it: see [stretch].
//
// Start with [Study].
package copying

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/lab/timing"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Study returns the study, with its arms and claims.
func Study() study.Study {
	return study.Study{
		Name:      "copy",
		Question:  "what does the size of the buffer do to a copy, by the file's size, by syncing, and by file system",
		Source:    study.CopyBufferSizes,
		Takes:     []string{study.TakesPart, study.TakesBuffer, study.TakesCache, study.TakesCount, "source"},
		Published: copyPublished(),
		Arms:      copyArms,
		Rounds:    copyRounds,
		Twin:      copyArm(twinBuffer),
		Flat:      true,
		Show:      showCopies,
		Across:    acrossCopies,
		Claims:    study.ClaimsOf(study.CopyBufferSizes, copyClaims()),
	}
}

// copyPublished are the published tables: the book's, and the elapsed times of all
// file systems of the repetition. The rest of it stands beside what is measured.
func copyPublished() []study.Table {
	t := study.Table{
		Title: "Elapsed s: ext2, Linux 2.6.30, 100 million bytes; 1 million with O_SYNC", Source: "The Linux Programming Interface, tables 13-1 to 13-3",
		Head: []string{"Buffer Size", "Copy", "Write", "Write with O_SYNC"},
	}
	rows := timing.Book()
	for _, buffer := range buffersIn(rows) {
		row := []string{strconv.Itoa(buffer)}
		for _, form := range []timing.Form{timing.Copy, timing.Write, timing.Synced} {
			row = append(row, elapsedOf(rows, form, buffer))
		}
		t.Rows = append(t.Rows, row)
	}
	return []study.Table{
		t,
		publishedByFileSystem("Copy of 100 MiB, elapsed s, by file system", timing.PublishedCopies()),
		publishedByFileSystem("Write of 32 MiB, elapsed s, by file system", timing.PublishedWrites()),
	}
}

// copyRounds returns the preset's number of rounds. Where parts were named and the time is short they
// are fewer, down to fewestRounds, if every large buffer is then copied whole.
func copyRounds(c study.Choice) int {
	const fewestRounds = 3
	most := c.RoundsToRun()
	if len(c.Parts) == 0 {
		return most
	}
	need := time.Duration(0)
	for _, cell := range repeated(copyMatrix(c)) {
		if (cell.form == timing.Copy || cell.form == timing.InC) && cell.buffer >= wholeBuffer {
			need += cell.time(cell.size, c.SlowerInPlan())
		}
	}
	for c.Rounds = most; c.Rounds >= fewestRounds; c.Rounds-- {
		if wholePart(copyRound(c)) >= need {
			return c.Rounds
		}
	}
	return most
}

// A copyCell is one way to copy, or to write: what its name says.
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
func copyCells(e study.Evidence) (cells []copyCell) {
	for _, arm := range e.Arms() {
		if c, ok := copyCellOf(arm); ok && e.Have(arm.Name) {
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

// twinBuffer is the buffer size of the copy that is run twice.
const twinBuffer = 4096

func copyArm(buffer int64) string { return copyCell{timing.Copy, wholeSize, buffer}.name() }
func syncArm(buffer int64) string { return copyCell{timing.Synced, syncSize, buffer}.name() }
