package holdfast_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// FuzzCalls reads its input as a program of calls, made one after the other, and
// of faults. The ledger judges it as it judges the fault matrix. Beside it runs a
// model that is too simple to be wrong: the accepted bytes, in their order.
func FuzzCalls(f *testing.F) {
	for i := range faultPolicies {
		p := byte(i)
		f.Add([]byte{p, 0, 10, 0, 20, 8, 9, 31})                             // write, flush, sync, close
		f.Add([]byte{p, 0, 10, 13, 50, 0, 20, 31, 0, 1})                     // flushed by time, and a write after close
		f.Add([]byte{p, 14, 1, 0, 200, 1, 255, 0, 3, 13, 20, 8, 0, 9, 15})   // a failing write that is over
		f.Add([]byte{p, 14, 8, 0, 200, 0, 3, 8, 0, 9, 13, 9, 15, 8, 9})      // a full disk that has room again
		f.Add([]byte{p, 14, 5, 0, 200, 9, 0, 3, 8, 13, 30, 31, 31})          // a failing sync
		f.Add([]byte{p, 7, 9, 7, 10, 10, 0, 10, 1, 6, 6, 14, 4, 2, 255, 31}) // enqueue, wait, short writes
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 400 {
			return
		}
		problems, story := runProgram(t, program)
		if len(problems) > 0 {
			t.Errorf("%s\n%s", strings.Join(problems[:min(8, len(problems))], "\n"), story)
		}
	})
}

// runProgram returns what is wrong and what happened.
func runProgram(t *testing.T, program []byte) (problems []string, story string) {
	defer func() {
		if r := recover(); r != nil {
			problems = append(problems, fmt.Sprint(r))
		}
	}()
	hang := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs: %q", program)) })
	defer hang.Stop()
	m := &machine{program: program}
	synctest.Test(t, func(t *testing.T) {
		m.boot(t)
		for len(m.program) > 0 {
			m.step()
		}
		m.close()
		m.l.Write(7, 1)
	})
	return append(m.problems, m.l.judge()...), m.l.story()
}

// A machine runs a program.
type machine struct {
	program  []byte
	l        *ledger
	f        *fault.File
	model    []byte
	end      int64
	closed   bool
	problems []string
}

func (m *machine) wrong(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

// next returns the next byte of the program, 0 behind its end.
func (m *machine) next() int {
	if len(m.program) == 0 {
		return 0
	}
	b := m.program[0]
	m.program = m.program[1:]
	return int(b)
}

func (m *machine) boot(t *testing.T) {
	p := mustParse(t, faultPolicies[m.next()%len(faultPolicies)])
	m.f = fault.New()
	m.f.SetSector(8)
	var err error
	if m.l, err = newLedger(p, m.f, uint64(len(m.program))); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) step() {
	time.Sleep(time.Nanosecond)
	switch op := m.next() % 32; op {
	case 6:
		m.took(m.l.WriteString(0, m.size()))
	case 7:
		m.enqueue()
	case 8:
		m.agrees(m.l.Flush())
	case 9:
		m.agrees(m.l.Sync())
	case 10:
		m.wait()
	case 13:
		time.Sleep(time.Duration(m.next()) * 500 * time.Microsecond)
	case 14:
		m.addFault()
	case 15:
		m.f.Mend()
		m.f.SetRoom(fault.Unlimited)
	case 31:
		m.close()
	default:
		m.took(m.l.Write(0, m.size()))
	}
}

// size returns a size that is small, near the buffer's or near twice that.
func (m *machine) size() int {
	b, buffer := m.next(), int(m.l.policy.Buffer)
	switch {
	case b < 128:
		return b
	case b < 192:
		return max(0, buffer+b-160)
	default:
		return max(0, 2*buffer+b-224)
	}
}

// addFault adds one fault that begins at one of the next calls.
func (m *machine) addFault() {
	kind, first, times := m.next(), 1+m.next()%4, 1+m.next()%4
	take := m.next() % 16
	writes, syncs := m.f.Count(fault.Write), m.f.Count(fault.Sync)
	switch kind % 10 {
	case 0:
		m.f.Add(fault.Fault{Op: fault.Write, First: writes + first, Times: times, Err: syscall.EIO})
	case 1:
		m.f.Add(fault.Fault{Op: fault.Write, First: writes + first, Times: times, Err: syscall.EIO, Take: take})
	case 2:
		m.f.Add(fault.Fault{Op: fault.Write, First: writes + first, Times: times, Err: syscall.EIO, Take: fault.All})
	case 3:
		m.f.Add(fault.Fault{Op: fault.Write, First: writes + first, Times: times, Take: take})
	case 4:
		m.f.Add(fault.Fault{Op: fault.Write, First: writes + first, Times: 8 * times, Take: 1 + take})
	case 5:
		m.f.Add(fault.Fault{Op: fault.Sync, First: syncs + first, Times: 1, Err: syscall.EIO})
	case 6:
		m.f.Add(fault.Fault{Op: fault.Write, First: writes + first, Times: times, Take: fault.All, Delay: time.Duration(take) * ms})
	case 7:
		m.f.Add(fault.Fault{Op: fault.Sync, First: syncs + first, Times: times, Delay: time.Duration(take) * ms})
	case 8:
		m.f.Add(fault.Fault{Op: fault.Write, First: writes + first, Times: 1, Take: take, Full: true})
	case 9:
		m.f.Add(fault.Fault{Op: fault.Close, Err: syscall.EIO})
	}
}

func (m *machine) enqueue() {
	size := m.size()
	before := m.l.w.Written()
	c := m.l.Enqueue(0, size)
	if c.err == nil {
		m.end = c.offset
	} else if c.n == unknown {
		c.n = int(m.l.w.Written() - before) // no one else writes
	}
	m.took(c)
}

func (m *machine) wait() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(m.next())*ms)
	defer cancel()
	m.l.WaitDurable(ctx, m.end)
}

// took adds to the model what a call accepted.
func (m *machine) took(c *call) {
	if c.n > 0 {
		m.model = append(m.model, c.record[:c.n]...)
	}
	if m.closed && (c.n > 0 || (c.err == nil && len(c.record) > 0)) {
		m.wrong("accepted after Close: %v", c)
	}
	m.agrees(c)
}

// agrees compares the model with the Writer and its file.
func (m *machine) agrees(c *call) {
	if got := m.f.ProcessCrash(); !bytes.HasPrefix(m.model, got) {
		m.wrong("the file holds what the model does not, from byte %d on: %v", firstDifference(got, m.model), c)
	}
	if got := m.l.w.Written(); got != int64(len(m.model)) {
		m.wrong("Written is %d, the model has %d bytes: %v", got, len(m.model), c)
	}
	if held := int64(len(m.model)) - m.f.Size(); held > 2*int64(m.l.policy.Buffer) {
		m.wrong("%d bytes are in memory: %v", held, c)
	}
	if c.err == nil && (c.method == "Flush" || c.method == "Sync") && m.f.Size() != int64(len(m.model)) {
		m.wrong("the file holds %d of %d bytes: %v", m.f.Size(), len(m.model), c)
	}
}

func (m *machine) close() {
	time.Sleep(time.Nanosecond)
	c := m.l.Close()
	var failed *holdfast.WriteError
	if !m.closed {
		m.agrees(c)
		if !errors.As(c.err, &failed) && m.f.Size() != int64(len(m.model)) {
			m.wrong("the file holds %d of %d bytes: %v", m.f.Size(), len(m.model), c)
		}
	}
	m.closed = true
}
