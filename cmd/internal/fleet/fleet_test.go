package fleet

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A maker makes up results files as bench writes them, with histograms.
type maker struct {
	t   *testing.T
	dir string
	r   *rand.Rand
}

func newMaker(t *testing.T) *maker {
	return &maker{t, t.TempDir(), rand.New(rand.NewPCG(3, 3))}
}

// run makes up the results of a host. slower divides its disk's speed.
func (m *maker) run(name string, slower float64) result.Run {
	h := result.Header{
		SchemaVersion: result.SchemaVersion, Program: "holdfast v0.1.0", Study: "policy", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Dir: "/data",
		Plan: result.Plan{Rounds: 6}, Machine: []machine.Fact{
			{Name: machine.HostName, Value: name}, {Name: "CPU model", Value: "Fast 9"}, {Name: "memory", Value: "31.2 GiB"}, {Name: "file system", Value: "ext4"},
			{Name: "mount options", Value: "rw,relatime"}, {Name: "kernel", Value: "6.1"}, {Name: "write cache", Value: "write through"},
		},
	}
	for _, p := range []holdfast.Policy{holdfast.Buffered(64 * holdfast.KiB), holdfast.Durable(), holdfast.EachDurable()} {
		for _, writers := range []int{1, 64} {
			h.Cells = append(h.Cells, result.Cell{Name: fmt.Sprintf("policy=%v/record=128B/writers=%d", p, writers), Policy: p, RecordBytes: 128, Writers: writers, Records: 1000, LatencyStride: 1})
		}
	}
	run := result.Run{Header: h, End: &result.End{State: result.Complete, Rounds: 6}}
	for round := range 6 {
		for i, c := range h.Cells {
			each := time.Duration(m.r.NormFloat64()*2 + 100)
			if c.Policy.Sync.Waits() {
				each = time.Duration(slower * (m.r.NormFloat64()*2e4 + 1e6))
			}
			hist := result.NewHistogram()
			for range 100 {
				result.Record(hist, max(1, time.Duration(m.r.ExpFloat64()*float64(each))))
			}
			latency, err := result.NewLatency(hist, func(int64, float64) bool { return true })
			if err != nil {
				m.t.Fatal(err)
			}
			run.Trials = append(run.Trials, &result.Trial{Cell: c.Name, Round: round + 1, Position: i + 1, Measurement: result.Measurement{
				Records: 1000, Size: 128000, Write: 1000 * each, Close: 1000, Elapsed: 1000*each + 1000, Latency: latency,
			}})
		}
	}
	return run
}

// text is a run as it is on disk.
func (m *maker) text(run result.Run) []byte {
	var b bytes.Buffer
	if err := result.Write(&b, run); err != nil {
		m.t.Fatal(err)
	}
	return b.Bytes()
}

func (m *maker) write(file string, text []byte) {
	file = filepath.Join(m.dir, file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, text, 0o666)); err != nil {
		m.t.Fatal(err)
	}
}

// do runs the command in the directory, and returns what it printed and its exit code.
func (m *maker) do(stdin string, args ...string) (stdout, stderr string, code int) {
	m.t.Helper()
	m.t.Chdir(m.dir)
	cmd := New()
	var out, talk bytes.Buffer
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetArgs(args)
	code = cli.Report(&talk, cmd.Execute())
	return out.String(), talk.String(), code
}

func (m *maker) want(text string, parts ...string) {
	m.t.Helper()
	for _, part := range parts {
		if !strings.Contains(filepath.ToSlash(text), part) {
			m.t.Errorf("there is no %q in:\n%s", part, text)
		}
	}
}

func TestFleetFindsTheSlowDisk(t *testing.T) {
	m := newMaker(t)
	for i := range 5 {
		m.write(fmt.Sprintf("n%d/results.jsonl", i), m.text(m.run(fmt.Sprint("n", i), 1)))
	}
	out, _, code := m.do("", ".")
	m.want(out, "5 hosts in 1 group: no outlier\n")
	if code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	slow := m.run("n3", 30)
	slow.Header.Machine[5].Value, slow.Header.StartedAt = "5.4", slow.Header.StartedAt.Add(time.Hour)
	slow.Header.Program = "holdfast v0.2.0"
	m.write("again.jsonl", m.text(slow))
	m.write("empty.jsonl", nil)
	m.write("n9/damaged.jsonl", append(bytes.SplitAfter(m.text(m.run("n9", 1)), []byte("\n"))[0], "{}}\n"...))
	m.write("expect", []byte("n0 n1 n2 # the first rack\nn3\n\nn7"))
	out, stderr, code := m.do("", ".", "--expect", "expect")
	m.want(out, "5 hosts in 1 group: 1 outlier (n3: syncs 29.7x); 3 without results\n", "n3 (group 1): syncs slower: ", "kernel 5.4 (its peers: 6.1)",
		"1 host never answered: n7\n", "2 files can't be used: empty (empty.jsonl: is empty: bench did not start", "(n9/damaged.jsonl: line 2: ",
		"1 host answered and was not expected: n4\n", "1 file not used, because the host has newer results: n3 (again.jsonl, not",
		"doubtful: the results are from several versions of holdfast, which may measure differently: holdfast\n  v0.1.0 (4 hosts), holdfast v0.2.0\n")
	m.want(stderr, "holdfast: outliers: n3\nhint: ")
	if code != cli.ExitNotMet || strings.Count(out, "\n") > 30 {
		t.Errorf("exit code %d, %d lines", code, strings.Count(out, "\n"))
	}
	m.do("", ".", "--export", "json", "-o", "fleet.json")
	text, err := os.ReadFile("fleet.json")
	var document struct {
		Kind     string
		Outliers []fleet.Outlier
	}
	if err := errors.Join(err, json.Unmarshal(text, &document)); err != nil || document.Kind != "fleet" || len(document.Outliers) != 1 {
		t.Errorf("%v: %s", err, text)
	}
	out, _, _ = m.do("", ".", "--export", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 1+5*6+2 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	out, _, _ = m.do("", ".", "--export", "markdown")
	m.want(out, "### holdfast: fleet\n", "**n3** (group 1): syncs slower", "| group | hosts |")
	out, _, _ = m.do("n0 n7", ".", "--expect", "-", "--all")
	m.want(out, "1 host never answered: n7\n", "n0    buffer=64KiB,sync=never, 128B × 1")
	m.do("", ".", "-o", "fleet.html")
	text, err = os.ReadFile("fleet.html")
	m.want(string(text), "<!doctype html>", "n3, group 1")
	if err != nil {
		t.Error(err)
	}
}

func TestFleetThatCantBeJudged(t *testing.T) {
	m := newMaker(t)
	for i := range 3 {
		m.write(fmt.Sprintf("n%d.jsonl", i), m.text(m.run(fmt.Sprint("n", i), 1)))
	}
	out, stderr, code := m.do("", "n0.jsonl", "n1.jsonl", "n2.jsonl", "./n2.jsonl")
	m.want(out, "none could be judged, because no group has 4 hosts")
	m.want(stderr, "holdfast: not every host could be judged\nhint: ")
	if code != cli.ExitNotKnown {
		t.Errorf("exit code %d", code)
	}
	other := m.run("n3", 1)
	other.Header.Study = "lines"
	m.write("n3.jsonl", m.text(other))
	if out, _, code = m.do("", "."); code != cli.ExitNotKnown {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	m.want(out, "4 hosts in 2 groups: none could be judged", "lines, Fast 9")
	m.write("bad/x.jsonl", []byte("\x1b[31m\n"))
	out, _, code = m.do("", "bad")
	m.want(out, "0 hosts in 0 groups", "1 file can't be used: x (bad/x.jsonl: line 1: not a results file of holdfast")
	if code != cli.ExitNotKnown {
		t.Errorf("exit code %d", code)
	}
}

func TestFleetRefuses(t *testing.T) {
	m := newMaker(t)
	m.write("n0.jsonl", m.text(m.run("n0", 1)))
	m.write("none/x.txt", nil)
	m.write("blank", []byte(" # nobody\n"))
	refuses := func(want string, args ...string) {
		t.Helper()
		out, stderr, code := m.do("", args...)
		if code != cli.ExitUsage || out != "" || !strings.HasPrefix(stderr, "holdfast: "+want) || !strings.Contains(stderr, "\nhint: ") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, out, stderr)
		}
	}
	refuses("fleet needs results files, or directories with results\n")
	refuses("there is no file *.jsonl in none\n", "none")
	refuses("there is no file or directory gone\n", "gone")
	refuses("the name of the results is empty\n", "")
	refuses("--expect gone: ", ".", "--expect", "gone")
	refuses("--expect blank: the file has no names\n", ".", "--expect", "blank")
	refuses("--export bench: a fleet has no benchmark lines", ".", "--export", "bench")
	refuses("-o n0.jsonl: the file exists", ".", "-o", "n0.jsonl")
}

// TestThousandHosts reads 1,000 files with histograms, of two kinds of machine. It takes some seconds of CPU
// time on an idle machine; the bounds are generous, and memory must not grow with the trials.
func TestThousandHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 1,000 files of 30 KiB; not with -short")
	}
	m := newMaker(t)
	const hosts, name = 1000, "NAME-OF-HOST"
	set := func(run result.Run, fact, value string) result.Run {
		for i := range run.Header.Machine {
			if run.Header.Machine[i].Name == fact {
				run.Header.Machine[i].Value = value
			}
		}
		return run
	}
	var like, old [][]byte
	for range 50 {
		slower := 1 + 0.05*m.r.NormFloat64()
		like = append(like, m.text(m.run(name, slower)))
		old = append(old, m.text(set(m.run(name, 3*slower), "CPU model", "Old 3")))
	}
	size := 0
	expect := []string{"node1000", "node1001"}
	for i := range hosts {
		text := like[m.r.IntN(len(like))]
		switch {
		case i == 618:
			text = m.text(set(m.run(name, 2.5), "kernel", "5.4"))
		case i == 77:
			text = m.text(set(m.run(name, 0.05), "write cache", "write back"))
		case i == 901:
			text = nil
		case i >= 800:
			text = old[m.r.IntN(len(old))]
		}
		host := fmt.Sprintf("node%04d", i)
		text = bytes.ReplaceAll(text, []byte(name), []byte(host))
		size += len(text)
		expect = append(expect, host)
		m.write(filepath.Join("results", host+".jsonl"), text)
	}
	m.write("nodes.txt", []byte(strings.Join(expect, "\n")))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	out, stderr, code := m.do("", "results", "--expect", "nodes.txt")
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	t.Logf("%d files of %d KiB: %v, %d MiB more from the system\n%s", hosts, size/hosts>>10, took.Round(time.Millisecond), (after.Sys-before.Sys)>>20, out)
	m.want(out, "999 hosts in 2 groups: 2 outliers (node0077: syncs 0.0", "node0618 (group 1): syncs slower: 2", "differs: kernel 5.4 (its peers: 6.1)\n",
		"node0077 (group 1): syncs too fast to be true: 0.0", "write cache is write back, but write through on nearly all of its peers",
		"2 hosts never answered: node1000, node1001\n", "1 file can't be used: node0901 (results/node0901.jsonl: is empty")
	m.want(stderr, "outliers: node0077, node0618\n")
	if code != cli.ExitNotMet || strings.Count(out, "\n") > 30 {
		t.Errorf("exit code %d, %d lines:\n%s", code, strings.Count(out, "\n"), out)
	}
	if took > time.Minute || after.Sys-before.Sys > 256<<20 {
		t.Errorf("took %v and %d MiB", took, (after.Sys-before.Sys)>>20)
	}
}
