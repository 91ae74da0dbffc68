package records

import (
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/DeRuina/timberjack"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

// rotating compares how fast logs take records that rotate by size: kind rotate compares the same
// logs by their losses.
func rotating() (all []*group) {
	const size = 8 * holdfast.MiB
	ours := func(p holdfast.Policy) how {
		return how{read: rotatedRecords, open: func(dir string, _ work) (*sink, error) {
			f, err := rotate.Open(logPath(dir), rotate.Options{Policy: p, MaxSize: size, Records: true})
			if err != nil {
				return nil, err
			}
			return &sink{writer: shared(f), close: f.Close}, nil
		}}
	}
	theirs := func(open func(path string, megabytes int) io.WriteCloser) how {
		return how{read: rotatedRecords, open: func(dir string, _ work) (*sink, error) {
			l := open(logPath(dir), int(size/holdfast.MiB))
			return &sink{writer: shared(l), close: l.Close}, nil
		}}
	}
	for _, n := range []int{1, 8, 64} {
		w := work{goroutines: n, each: 500_000 / n, size: 128, closeTimed: true}
		g := newGroup(fmt.Sprintf("rotate/goroutines=%d", n), fmt.Sprintf("records of 128 bytes to a log that rotates at %v, until all are in the page cache", size), w, append([]*arm{
			{Name: "holdfast", Note: "package rotate, " + holdfast.Unbuffered().String(), Do: ours(holdfast.Unbuffered())},
			{Name: "holdfast-1s", Note: "package rotate, " + holdfast.Periodic(time.Second).String() + ": a stronger promise than the other arms make", Do: ours(holdfast.Periodic(time.Second))},
			{Name: "lumberjack", Note: "as it comes", Do: theirs(func(path string, mb int) io.WriteCloser { return &lumberjack.Logger{Filename: path, MaxSize: mb} })},
			{Name: "timberjack", Note: "as it comes", Do: theirs(func(path string, mb int) io.WriteCloser { return &timberjack.Logger{Filename: path, MaxSize: mb} })},
		}, limits(w)...))
		g.Notes = []string{"In the clock: from the first record until the log is flushed and closed, the rotations included. rotate syncs the directory at each."}
		all = append(all, g)
	}
	return all
}

// rotatedRecords yields the records of the backups, which sort by their times, and of the log.
func rotatedRecords(dir string, w work) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		paths, err := filepath.Glob(logPath(dir) + "-*")
		slices.Sort(paths)
		for _, path := range append(paths, logPath(dir)) {
			var f *os.File
			if err == nil {
				f, err = os.Open(path)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			more := true
			split(f, w.size, func(p []byte, err error) bool {
				more = yield(p, err)
				return more
			})
			f.Close()
			if !more {
				return
			}
		}
	}
}
