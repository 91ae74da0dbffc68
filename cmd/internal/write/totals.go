package write

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/files"
)

// Totals counts the work of a run of write.
type totals struct {
	Kind        string          `json:"kind"` // write
	End         cli.EndKind     `json:"end"`
	Lines       int64           `json:"lines"` // that were read
	Written     int64           `json:"written_lines"`
	Bytes       int64           `json:"written_bytes"`
	Files       int             `json:"files"`  // that lines went to
	Healed      int64           `json:"healed"` // torn last lines, which were ended first
	Failures    failures        `json:"failures"`
	FirstLost   int64           `json:"first_lost_line,omitempty"` // that a file has not taken, if no bytes were lost
	LostBytes   int64           `json:"lost_bytes"`                // that were accepted, and could not be written at the end
	Cut         int             `json:"cut_bytes"`                 // read of a line without its end
	FailedFiles int             `json:"failed_files"`
	FailedLate  int             `json:"-"` // of these at the end
	Policy      holdfast.Policy `json:"policy"`
	// Durable says that all of it is on stable storage.
	Durable bool          `json:"durable"`
	Elapsed time.Duration `json:"elapsed_ns"`
	losses
	Stats files.Stats `json:"stats"`
}

// Losses is the most that a crash could have taken of all files together while the run went on.
type losses struct {
	Process string `json:"lost_when_process_dies"`
	Bytes   int64  `json:"lost_when_process_dies_bytes"` // at most
	Power   string `json:"lost_when_machine_dies"`
}

// A failure is why a line was not written.
type failure int

const (
	missing   failure = iota // it has no such column
	tooLong                  // it is longer than maxLine
	refused                  // its file has not taken it
	uncertain                // its file has taken it, and then a sync failed
)

// failures counts the lines that were not written, by why.
type failures [4]int64

func (f failures) sum() (n int64) {
	for _, count := range f {
		n += count
	}
	return n
}

// failureNames are the keys in JSON, and the words for people.
var failureNames = [len(failures{})]struct{ key, words string }{
	missing:   {"missing", "without such a column"},
	tooLong:   {"too_long", "too long"},
	refused:   {"refused", "not accepted by their file"},
	uncertain: {"uncertain", "perhaps lost, because a sync of their file failed"},
}

// MarshalJSON has a key for each why.
func (f failures) MarshalJSON() ([]byte, error) {
	keys := map[string]int64{}
	for why, name := range failureNames {
		keys[name.key] = f[why]
	}
	return json.Marshal(keys)
}

func (f failures) String() string {
	var whys []string
	for why, n := range f {
		if n > 0 {
			whys = append(whys, cli.Grouped(n)+" "+failureNames[why].words)
		}
	}
	return strings.Join(whys, ", ")
}

// print prints what was done, for people.
func (t *totals) print(w io.Writer) error {
	var b strings.Builder
	rate := ""
	if t.Elapsed >= time.Millisecond {
		rate = fmt.Sprintf(" (%s/s)", cli.BytesText(int64(float64(t.Bytes)/t.Elapsed.Seconds())))
	}
	fmt.Fprintf(&b, "written: %s to %s, %s in %v%s\n", cli.CountText(t.Written, "line"), cli.CountText(int64(t.Files), "file"),
		cli.BytesText(t.Bytes), t.Elapsed.Round(time.Millisecond), rate)
	if n := t.Failures.sum(); n > 0 {
		fmt.Fprintf(&b, "not written: %s: %s\n", cli.CountText(n, "line"), t.Failures)
	}
	if t.Cut > 0 {
		fmt.Fprintf(&b, "not written: the last %s of the input, a line without an end\n", cli.CountText(int64(t.Cut), "byte"))
	}
	if t.Healed > 0 {
		fmt.Fprintf(&b, "healed: %s, ended with a line feed before new lines\n", cli.CountText(t.Healed, "torn line"))
	}
	if t.FailedFiles > 0 {
		fmt.Fprintf(&b, "failed: %s\n", cli.CountText(int64(t.FailedFiles), "file"))
	}
	if t.LostBytes > 0 {
		fmt.Fprintf(&b, "lost at the end: %s that had been accepted\n", cli.CountText(t.LostBytes, "byte"))
	}
	if t.Written > 0 {
		durable := "all written lines"
		switch {
		case t.Policy.Sync.Mode == holdfast.SyncNever:
			durable = "nothing is guaranteed under sync=never: the kernel writes the bytes within about half a minute"
		case t.FailedFiles > 0:
			durable = "all written lines except in failed files"
		}
		fmt.Fprintf(&b, "durable: %s\n", durable)
	}
	if t.Stats.NoJournal > 0 {
		b.WriteString(cli.NoJournalText)
	}
	if t.Written > 0 {
		fmt.Fprintf(&b, "policy: %v; possible loss while it ran, if the process had died: %s; at a power cut: %s\n", t.Policy, t.Process, t.Power)
	}
	if t.Stats.Retries > 0 || t.Stats.Evictions > 0 {
		fmt.Fprintf(&b, "retried calls: %s; idle files and directories closed: %s\n", cli.Grouped(t.Stats.Retries), cli.Grouped(t.Stats.Evictions))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A pulse is write's progress line.
type pulse struct {
	*cli.Progress
	files *files.Set
	begun time.Time

	mu   sync.Mutex
	seen totals
}

// see keeps the totals for text.
func (p *pulse) see(t totals) {
	p.mu.Lock()
	p.seen = t
	p.mu.Unlock()
}

func (p *pulse) text() string {
	handles := p.files.Stats().Open
	p.mu.Lock()
	defer p.mu.Unlock()
	rate := float64(p.seen.Bytes) / max(time.Since(p.begun), time.Millisecond).Seconds() // Windows' clock may not have moved yet
	return fmt.Sprintf("%s, %s/s, %s, %s",
		cli.CountText(p.seen.Lines, "line"), cli.BytesText(int64(rate)), cli.CountText(int64(p.seen.Files), "file"), cli.CountText(int64(handles), "handle"))
}
