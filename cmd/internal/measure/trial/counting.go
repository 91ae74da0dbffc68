package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// A Counting is a way to count the system calls of a trial. Each way makes the calls slower, so a trial
// that counts is in no figure.
type Counting int

const (
	NotCounting Counting = iota
	Tracepoints          // by the kernel's events, in this process
	Marks                // by the process that traces this one with [CountByTrace]
)

func systemCalls(c probe.SyscallCounts, source string) *result.SystemCalls {
	return &result.SystemCalls{Total: c.Total, Writes: c.Writes, Syncs: c.Syncs, Source: source}
}

// TracepointsUnseen returns the reason why tracepoints can't count system calls here, or nothing if
// they can.
func TracepointsUnseen() string {
	c, err := probe.StartSyscallCounter()
	if err == nil {
		_, err = c.Stop()
	}
	return reason(err)
}

// reason returns the text of an error about counting, without the part that all such errors share.
func reason(err error) string {
	if err == nil {
		return ""
	}
	text := strings.TrimPrefix(err.Error(), "system calls can't be counted: ")
	return strings.TrimSuffix(text, ": "+errors.ErrUnsupported.Error())
}

// A Traced is a trial's system calls and the number of records that it wrote meanwhile.
type Traced struct {
	Cell    string `json:"cell"`
	Records int64  `json:"records"`
}

// CountByTrace runs cmd under ptrace and returns the system calls of each trial
// that cmd has run with [Marks]. The command must list these trials on its standard output,
// in their order and each as a [Traced] in JSON. If there are no counts, why is the reason.
func CountByTrace(cmd *exec.Cmd) (counts map[string]*result.SystemCalls, why string) {
	var out, talk strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &talk
	pairs, err := probe.TraceSyscalls(cmd)
	if err != nil {
		return nil, strings.TrimSpace(reason(err) + " " + talk.String())
	}
	counts = map[string]*result.SystemCalls{}
	list := json.NewDecoder(strings.NewReader(out.String()))
	for _, pair := range pairs {
		var t Traced
		if err := list.Decode(&t); err != nil {
			return nil, fmt.Sprintf("%d trials were traced, but fewer were reported: %v", len(pairs), err)
		}
		counts[t.Cell] = systemCalls(pair, "ptrace")
		counts[t.Cell].Records = t.Records
	}
	return counts, ""
}
