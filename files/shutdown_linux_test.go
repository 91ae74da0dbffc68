//go:build go1.25

package files_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/filetest"
	"github.com/holdfast-go/holdfast/internal/stoptest"
)

// stoppedPaths is how many files are written before the file system stops.
const stoppedPaths = 40

func pathIn(dir string, i int) string { return filepath.Join(dir, strconv.Itoa(i)) }

// stoppedContent is more than a page, so that a torn file would show.
func stoppedContent(n uint64) []byte {
	const size = 3*4096 + 8
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, n), size/8)
}

// TestDurableFilesSurviveTheStopOfTheirFileSystem has a real file system stop at once,
// without writing its journal or any page (FS_IOC_SHUTDOWN). After a new mount it checks the files:
// the device had been given them. It is a power cut but for the device's own cache. The process
// that mounts has a mount namespace of its own, so that nothing stays mounted whatever becomes of
// it.
func TestDurableFilesSurviveTheStopOfTheirFileSystem(t *testing.T) {
	stoptest.Each(t, func(s *stoptest.FileSystem) { stoppedFiles{s}.stopWhileFilesAreDurable() })
}

// stoppedFiles writes many files to a file system and has it stop.
type stoppedFiles struct{ *stoptest.FileSystem }

func (s stoppedFiles) stopWhileFilesAreDurable() {
	for _, durable := range []holdfast.Policy{holdfast.Durable(), holdfast.EachDurable(), {Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} {
		for _, mode := range []files.Mode{files.Create, files.Replace} {
			dir := filepath.Join(s.Dir(), fmt.Sprintf("%v,%v", durable, mode))
			s.After(func() { s.writeAll(durable, dir, mode) })
			s.holds(dir, stoppedPaths)
		}
	}
	dir := filepath.Join(s.Dir(), "streams")
	s.After(func() { s.appendAll(holdfast.Durable(), dir) })
	s.holds(dir, stoppedPaths)

	// That the file system forgets what was not synced shows that it was stopped.
	dir = filepath.Join(s.Dir(), "never")
	s.After(func() { s.writeAll(holdfast.Unbuffered(), dir, files.Create) })
	s.holds(dir, 0)
}

func (s stoppedFiles) files(p holdfast.Policy) *files.Set {
	f, err := files.New(files.Options{Policy: p, Handles: 16, MkdirAll: true})
	if err != nil {
		s.T.Fatal(err)
	}
	return f
}

func (s stoppedFiles) writeAll(p holdfast.Policy, dir string, mode files.Mode) {
	s.T.Helper()
	f := s.files(p)
	defer f.Close()
	if _, err := f.WriteAll(context.Background(), func(yield func(files.Write) bool) {
		for i := range stoppedPaths {
			if !yield(files.Write{Path: pathIn(dir, i), Data: stoppedContent(uint64(i)), Mode: mode}) {
				return
			}
		}
	}); err != nil {
		s.T.Fatal(err)
	}
}

func (s stoppedFiles) appendAll(p holdfast.Policy, dir string) {
	s.T.Helper()
	f := s.files(p)
	defer f.Close()
	for i := range stoppedPaths {
		if err := f.Append(context.Background(), pathIn(dir, i), stoppedContent(uint64(i))); err != nil {
			s.T.Fatal(err)
		}
	}
}

// holds checks that n files are there, each with all its bytes.
func (s stoppedFiles) holds(dir string, want int) {
	s.T.Helper()
	whole := 0
	for i := range stoppedPaths {
		if string(filetest.ContentOf(s.T, pathIn(dir, i))) == string(stoppedContent(uint64(i))) {
			whole++
		}
	}
	if whole != want {
		s.T.Errorf("%s: %d of %d files are whole, want %d", filepath.Base(dir), whole, stoppedPaths, want)
	}
}
