package records

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/DeRuina/timberjack"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

// rotateAt is the size at which the logs rotate.
const rotateAt = 8 * holdfast.MiB

// rotating compares how fast logs take records that rotate by size: kind rotate compares the same
// logs by their losses.
func rotating() (all []*group) {
	for _, n := range []int{1, 8, 64} {
		w := work{goroutines: n, each: 500_000 / n, size: 128, closeTimed: true}
		g := newGroup(fmt.Sprintf("rotate/goroutines=%d", n), fmt.Sprintf("records of 128 bytes to a log that rotates at %v, until all are in the page cache", rotateAt), w,
			append(rotatingLogs(true, rotatedRecords, func(to io.Writer) io.Writer { return to }), limits(w)...))
		g.Notes = []string{"In the clock: from the first record until the log is flushed and closed, the rotations included. Under a policy that syncs, rotate syncs the directory at each."}
		all = append(all, g)

		w.each = 300_000 / n
		logger := func(to io.Writer) io.Writer { return slogger{Writer: to, log: slog.New(slog.NewJSONHandler(to, nil))} }
		g = newGroup(fmt.Sprintf("slog/goroutines=%d", n), fmt.Sprintf("the same under log/slog, which makes each record a line of JSON of some 130 bytes; the log rotates at %v", rotateAt), w,
			append(rotatingLogs(false, loggedRecords, logger), &arm{Name: "limit no sink", Note: "the logger alone, over io.Discard", Do: how{read: nothing, open: func(string, work) (*sink, error) {
				return &sink{writer: shared(logger(io.Discard)), close: func() error { return nil }}, nil
			}}}))
		all = append(all, g)
	}
	return all
}

// rotatingLogs are ours under two policies, and the others. Over puts a writer of records over a log, which all goroutines share.
func rotatingLogs(records bool, read func(string, work) iter.Seq2[[]byte, error], over func(io.Writer) io.Writer) []*arm {
	ours := func(p holdfast.Policy) how {
		return how{read: read, open: func(dir string, _ work) (*sink, error) {
			f, err := rotate.Open(logPath(dir), rotate.Options{Policy: p, MaxSize: rotateAt, Records: records})
			if err != nil {
				return nil, err
			}
			return &sink{writer: shared(over(f)), close: f.Close}, nil
		}}
	}
	theirs := func(open func(path string, megabytes int) io.WriteCloser) how {
		return how{read: read, open: func(dir string, _ work) (*sink, error) {
			l := open(logPath(dir), int(rotateAt/holdfast.MiB))
			return &sink{writer: shared(over(l)), close: l.Close}, nil
		}}
	}
	return []*arm{
		{Name: "holdfast", Note: "package rotate, " + holdfast.Unbuffered().String(), Do: ours(holdfast.Unbuffered())},
		{Name: "holdfast-1s", Note: "package rotate, " + holdfast.Periodic(time.Second).String() + ": a stronger promise than the other arms make", Do: ours(holdfast.Periodic(time.Second))},
		{Name: "lumberjack", Note: "as it comes", Do: theirs(func(path string, mb int) io.WriteCloser { return &lumberjack.Logger{Filename: path, MaxSize: mb} })},
		{Name: "timberjack", Note: "as it comes", Do: theirs(func(path string, mb int) io.WriteCloser { return &timberjack.Logger{Filename: path, MaxSize: mb} })},
	}
}

// A slogger makes a goroutine's records by a logger, which ignores errors: the lines are counted afterwards.
type slogger struct {
	io.Writer // not used: a sink has one
	log       *slog.Logger
}

func (s slogger) produce(w work, goroutine int) error {
	for seq := range w.each {
		s.log.Info("request", "goroutine", goroutine, "seq", seq, "path", "/index.html")
	}
	return nil
}

// loggedRecords yields the records of which a slogger has made lines.
func loggedRecords(dir string, w work) iter.Seq2[[]byte, error] {
	return rotated(dir, func(f io.Reader, yield func([]byte, error) bool) {
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			is := struct{ Goroutine, Seq int }{-1, -1}
			err := json.Unmarshal(lines.Bytes(), &is)
			if err != nil || is.Goroutine < 0 || is.Goroutine >= w.goroutines {
				yield(nil, fmt.Errorf("torn: %.80q is no line of the logger: %w", lines.Bytes(), err))
				return
			}
			rec := newRecord(w.size, is.Goroutine)
			rec.number(is.Seq)
			if !yield(rec, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	})
}

func rotatedRecords(dir string, w work) iter.Seq2[[]byte, error] {
	return rotated(dir, func(f io.Reader, yield func([]byte, error) bool) { split(f, w.size, yield) })
}

// rotated yields what each makes of the backups, which sort by their times, and of the log.
func rotated(dir string, each func(f io.Reader, yield func([]byte, error) bool)) iter.Seq2[[]byte, error] {
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
			each(f, func(p []byte, err error) bool {
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
