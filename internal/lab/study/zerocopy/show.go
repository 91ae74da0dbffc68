package zerocopy

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/study"
)

// What the document's client took to receive 10 times 1 GiB, in seconds.
const (
	publishedReadSend = 7.175773588009179
	publishedSendfile = 3.71454380400246
)

const tenFiles = 10 << 30 // bytes

// tenTimes is how long 10 GiB would take.
func tenTimes(t result.Trial) float64 { return study.PerRecord(t) * tenFiles }

// taken prints nanoseconds as the document does.
func taken(ns float64) string { return study.OrDash(ns, fmt.Sprintf("%.2f seconds", ns/1e9)) }

// gigabytes are those of a second.
func gigabytes(t result.Trial) float64 { return float64(t.Size) / float64(t.Elapsed) }

func showZero(e study.Evidence) study.Shown {
	return study.Shown{Tables: []study.Table{zeroTaken(e), zeroFiles(e), zeroSockets(e)}, Learnt: zeroLearnt(e)}
}

func zeroTaken(e study.Evidence) study.Table {
	t := study.Table{
		Title: "10 times 1 GiB to a client on the same machine", Head: []string{"Way", "Time taken"},
		Notes: []string{"From the time of a byte; the file is in the page cache."},
	}
	for _, row := range []struct{ name, way string }{{"read-send", wholeFile}, {"sendfile", bySendfile}} {
		if arm := zeroSocket(row.way); e.Have(arm) {
			t.Rows = append(t.Rows, []string{row.name, study.Median(e.Summary(arm, tenTimes), taken)})
		}
	}
	return t
}

// cpuAMiB is what a MiB takes of CPU time.
func cpuAMiB(name string) study.Metric {
	return func(t result.Trial) float64 { return study.Value(name)(t) / float64(t.Size) * (1 << 20) }
}

func wayOf(arm string) string {
	_, way, _ := strings.Cut(arm, ", ")
	return way
}

// againstPieces is the time of an arm as a multiple of that of its group's first.
func againstPieces(e study.Evidence, arm, pieces string) string {
	if arm == pieces {
		return study.Dash
	}
	return study.Compared(e.Ratio(arm, pieces, study.PerRecord))
}

func zeroFiles(e study.Evidence) study.Table {
	t := study.Table{
		Title: "From file to file",
		Head:  []string{"Way", "GB/s", "Time against read+write 64KiB", "CPU a MiB", "System calls"},
		Notes: []string{
			"All are of new files, from the page cache into the page cache; nothing is synced.",
			"A reflink copies no byte: its time is one for a file, and that of a byte falls with the size. On btrfs and xfs copy_file_range and holdfast.Copy do the same.",
			"holdfast.Copy opens, closes and keeps permissions and times within its time; its calls are not counted.",
		},
	}
	for _, c := range e.InGroups(groupToFile) {
		t.Rows = append(t.Rows, []string{
			wayOf(c.Name), study.Median(e.Summary(c.Name, gigabytes), study.Digits), againstPieces(e, c.Name, zeroFile(pieces64)),
			study.Duration(e.Median(c.Name, cpuAMiB(toldCPU))), study.Whole(e.Median(c.Name, study.Value(toldCalls))),
		})
	}
	return t
}

func zeroSockets(e study.Evidence) study.Table {
	t := study.Table{
		Title: "From a file to TCP on the loopback",
		Head:  []string{"Way", "GB/s", "Time against read+write 64KiB", "Sender's CPU a MiB", "Receiver's CPU a MiB", "Sender's calls", "Receiver's calls"},
		Notes: []string{"The receiver is a process of its own, and copies every byte out of its socket whatever the sender does."},
	}
	for _, c := range e.InGroups(groupToSocket) {
		t.Rows = append(t.Rows, []string{
			wayOf(c.Name), study.Median(e.Summary(c.Name, gigabytes), study.Digits), againstPieces(e, c.Name, zeroSocket(pieces64)),
			study.Duration(e.Median(c.Name, cpuAMiB(toldCPU))), study.Duration(e.Median(c.Name, cpuAMiB(toldReceiver))),
			study.Whole(e.Median(c.Name, study.Value(toldCalls))), study.Whole(e.Median(c.Name, study.Value(toldReceives))),
		})
	}
	return t
}

func zeroLearnt(e study.Evidence) string {
	var parts []string
	for _, p := range []struct{ text, slow, fast string }{
		{"to a socket, reading the whole file first takes %s the time of sendfile", zeroSocket(wholeFile), zeroSocket(bySendfile)},
		{"read and write of 64 KiB %s", zeroSocket(pieces64), zeroSocket(bySendfile)},
		{"to a file, read and write of 64 KiB take %s the time of copy_file_range", zeroFile(pieces64), zeroFile(byCopyRange)},
		{"and %s that of holdfast.Copy", zeroFile(pieces64), zeroFile(byCopy)},
	} {
		if c := e.Ratio(p.slow, p.fast, study.PerRecord); !math.IsNaN(c.Ratio) {
			parts = append(parts, fmt.Sprintf(p.text, study.Ratio(c)))
		}
	}
	return strings.Join(parts, ", ")
}
