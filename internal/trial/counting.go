package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/holdfast-go/holdfast/internal/result"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A Counting is a way in which the system calls of a trial are counted. Each makes
// the calls slower: a trial that counts is in no figure.
type Counting int

const (
	NotCounting Counting = iota
	Tracepoints          // by the kernel's events, in this process
	Marks                // by the process that runs this one under [CountByTrace]
)

func (m *meter) startCounting() (err error) {
	switch m.counting {
	case Tracepoints:
		if m.calls, err = sys.StartSyscallCounter(); err != nil {
			return fmt.Errorf("count system calls: %w", err)
		}
	case Marks:
		return sys.MarkSyscalls(true)
	}
	return nil
}

func (m *meter) stopCounting(into *result.Measurement) error {
	switch m.counting {
	case Tracepoints:
		counts, err := m.calls.Stop()
		if err != nil {
			return fmt.Errorf("count system calls: %w", err)
		}
		into.SystemCalls = systemCalls(counts, "tracepoints")
	case Marks:
		return sys.MarkSyscalls(false)
	}
	return nil
}

func systemCalls(c sys.SyscallCounts, source string) *result.SystemCalls {
	return &result.SystemCalls{Total: c.Total, Writes: c.Writes, Syncs: c.Syncs, Source: source}
}

// TracepointsUnseen says why system calls can't be counted by tracepoints here, or
// is empty.
func TracepointsUnseen() string {
	c, err := sys.StartSyscallCounter()
	if err == nil {
		_, err = c.Stop()
	}
	return reason(err)
}

// reason is the text of an error about counting, without what they all say.
func reason(err error) string {
	if err == nil {
		return ""
	}
	text := strings.TrimPrefix(err.Error(), "system calls can't be counted: ")
	return strings.TrimSuffix(text, ": "+errors.ErrUnsupported.Error())
}

// A Traced is a trial's system calls and how many records it wrote meanwhile.
type Traced struct {
	Cell    string `json:"cell"`
	Records int64  `json:"records"`
}

// CountByTrace runs cmd under ptrace and returns the system calls of each trial
// that it has run with [Marks]. These it must list on its standard output, in
// their order and each as a [Traced] in JSON. why says why there are no counts.
func CountByTrace(cmd *exec.Cmd) (counts map[string]*result.SystemCalls, why string) {
	var out, talk strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &talk
	pairs, err := sys.TraceSyscalls(cmd)
	if err != nil {
		return nil, strings.TrimSpace(reason(err) + " " + talk.String())
	}
	counts = map[string]*result.SystemCalls{}
	list := json.NewDecoder(strings.NewReader(out.String()))
	for _, pair := range pairs {
		var t Traced
		if err := list.Decode(&t); err != nil {
			return nil, fmt.Sprintf("%d trials were traced, and fewer told of: %v", len(pairs), err)
		}
		counts[t.Cell] = systemCalls(pair, "ptrace")
		counts[t.Cell].Records = t.Records
	}
	return counts, ""
}
