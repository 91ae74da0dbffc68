package study

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast/internal/result"
)

// What the document's client took to receive 10 times 1 GiB, in seconds.
const (
	publishedReadSend = 7.175773588009179
	publishedSendfile = 3.71454380400246
)

const tenFiles = 10 << 30 // bytes

func zeroPublished() []Table {
	return []Table{{
		Title: "A file of 1 GiB, sent 10 times to a client on the same machine", Source: bufferingDrill,
		Head: []string{"Way", "Time taken"},
		Rows: [][]string{{"read-send", fmt.Sprint(publishedReadSend, " seconds")}, {"sendfile", fmt.Sprint(publishedSendfile, " seconds")}},
		Notes: []string{
			"By the page on zero-copy to which the document leads; one run of each.",
			"Its read-send reads the whole file into new memory before it sends the first byte; its sendfile begins at once.",
			"Its 4 copies are disk to kernel, kernel to program, program to socket, socket to network card; sendfile saves the two in the middle.",
		},
	}}
}

// tenTimes is how long 10 GiB would take.
func tenTimes(t result.Trial) float64 { return PerRecord(t) * tenFiles }

// taken prints nanoseconds as the document does.
func taken(ns float64) string { return orDash(ns, fmt.Sprintf("%.2f seconds", ns/1e9)) }

// gigabytes are those of a second.
func gigabytes(t result.Trial) float64 { return float64(t.Size) / float64(t.Elapsed) }

func showZero(e Evidence) Shown {
	return Shown{Tables: []Table{zeroTaken(e), zeroFiles(e), zeroSockets(e)}, Learnt: zeroLearnt(e)}
}

func zeroTaken(e Evidence) Table {
	t := Table{
		Title: "10 times 1 GiB to a client on the same machine", Head: []string{"Way", "Time taken"},
		Notes: []string{"From the time of a byte; the file is in the page cache."},
	}
	for _, row := range []struct{ name, way string }{{"read-send", wholeFile}, {"sendfile", bySendfile}} {
		if arm := zeroSocket(row.way); e.have(arm) {
			t.Rows = append(t.Rows, []string{row.name, median(e.Summary(arm, tenTimes), taken)})
		}
	}
	return t
}

// cpuAMiB is what a MiB takes of CPU time.
func cpuAMiB(told string) Metric {
	return func(t result.Trial) float64 { return Value(told)(t) / float64(t.Size) * (1 << 20) }
}

func wayOf(arm string) string {
	_, way, _ := strings.Cut(arm, ", ")
	return way
}

// againstPieces is the time of an arm as a multiple of that of its group's first.
func againstPieces(e Evidence, arm, pieces string) string {
	if arm == pieces {
		return dash
	}
	return compared(e.Ratio(arm, pieces, PerRecord))
}

func zeroFiles(e Evidence) Table {
	t := Table{
		Title: "From file to file",
		Head:  []string{"Way", "GB/s", "Time against read+write 64KiB", "CPU a MiB", "System calls"},
		Notes: []string{
			"All are of new files, from the page cache into the page cache; nothing is synced.",
			"A reflink copies no byte: its time is one for a file, and that of a byte falls with the size. On btrfs and xfs copy_file_range and holdfast.Copy do the same.",
			"holdfast.Copy opens, closes and keeps permissions and times within its time; its calls are not counted.",
		},
	}
	for _, c := range e.inGroups(groupToFile) {
		t.Rows = append(t.Rows, []string{
			wayOf(c.Name), median(e.Summary(c.Name, gigabytes), digits), againstPieces(e, c.Name, zeroFile(pieces64)),
			duration(e.Median(c.Name, cpuAMiB(toldCPU))), whole(e.Median(c.Name, Value(toldCalls))),
		})
	}
	return t
}

func zeroSockets(e Evidence) Table {
	t := Table{
		Title: "From a file to TCP on the loopback",
		Head:  []string{"Way", "GB/s", "Time against read+write 64KiB", "Sender's CPU a MiB", "Receiver's CPU a MiB", "Sender's calls", "Receiver's calls"},
		Notes: []string{"The receiver is a process of its own, and copies every byte out of its socket whatever the sender does."},
	}
	for _, c := range e.inGroups(groupToSocket) {
		t.Rows = append(t.Rows, []string{
			wayOf(c.Name), median(e.Summary(c.Name, gigabytes), digits), againstPieces(e, c.Name, zeroSocket(pieces64)),
			duration(e.Median(c.Name, cpuAMiB(toldCPU))), duration(e.Median(c.Name, cpuAMiB(toldReceiver))),
			whole(e.Median(c.Name, Value(toldCalls))), whole(e.Median(c.Name, Value(toldReceives))),
		})
	}
	return t
}

func zeroLearnt(e Evidence) string {
	var parts []string
	for _, p := range []struct{ text, slow, fast string }{
		{"to a socket, reading the whole file first takes %s the time of sendfile", zeroSocket(wholeFile), zeroSocket(bySendfile)},
		{"read and write of 64 KiB %s", zeroSocket(pieces64), zeroSocket(bySendfile)},
		{"to a file, read and write of 64 KiB take %s the time of copy_file_range", zeroFile(pieces64), zeroFile(byCopyRange)},
		{"and %s that of holdfast.Copy", zeroFile(pieces64), zeroFile(byCopy)},
	} {
		if c := e.Ratio(p.slow, p.fast, PerRecord); !math.IsNaN(c.Ratio) {
			parts = append(parts, fmt.Sprintf(p.text, ratio(c)))
		}
	}
	return strings.Join(parts, ", ")
}
