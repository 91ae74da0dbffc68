//go:build go1.25

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

// runProgram returns the errors found and the history.
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

// checkSentence checks an error that a user can cause: it is one lower-case
// sentence and quotes what was wrong.
func checkSentence(t *testing.T, err error, named ...string) {
	t.Helper()
	text := err.Error()
	if text == "" || strings.ToLower(text[:1]) != text[:1] || strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
		t.Errorf("%q is not a lower-case sentence without a full stop", text)
	}
	for _, name := range named {
		if strings.Contains(text, name) {
			return
		}
	}
	t.Errorf("%q names none of %q", text, named)
}

func FuzzParsePolicy(f *testing.F) {
	for _, text := range []string{
		"", "buffer=0", "buffer=64KiB,flush=100ms,sync=1s", "sync=group", "sync=each,buffer=1", "buffer=1,flush=1ns",
		"sync=close,sync=close", "buffer=1,", ",", "=", "buffer==1", "flush=1s", "buffer=99999999999999999999", "sync=0s",
		"buffer=2GiB", "buffer=1,sync=1h2m3.000000004s", "flush=1.5ms, buffer=10MB", "sync=-1ns", "buffer=64KB", "sync=NEVER\x00",
		"buffer=0,sync=2562047h47m16.854775807s", "sync=1s", "buffer=1,flush=.5us", "buffer=0,sync=1\u00b5s", "buffer=0,sync=1\u03bcs",
		"buffer=1,sync=1s/4MiB", "buffer=1,sync=4MiB/1s", "buffer=0,sync=4MiB", "buffer=2,flush=1B", "buffer=2,flush=1ns/1B,sync=1",
		"durable", "periodic=1s/4MiB", "buffered=1", "unbuffered=", "eachdurable", "periodic=1s,buffer=1", "buffer=1,sync=1s/1s/1k", "buffer=1\n =2",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			if p != (holdfast.Policy{}) {
				t.Errorf("ParsePolicy(%q) = %v beside %v", text, p, err)
			}
			checkSentence(t, err, "empty", "policy \"", "policy: buffer=", "policy: flush=", "policy: sync=")
			return
		}
		checkPolicyText(t, p)
	})
}

// checkPolicyText checks that the text of a valid policy is read as that policy.
func checkPolicyText(t *testing.T, p holdfast.Policy) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatalf("%+v is not valid: %v", p, err)
	}
	if again, err := holdfast.ParsePolicy(p.String()); err != nil || again != p {
		t.Errorf("ParsePolicy(%q) = %+v, %v; want %+v", p.String(), again, err, p)
	}
	var again holdfast.Policy
	if text, err := p.MarshalText(); err != nil || again.UnmarshalText(text) != nil || again != p {
		t.Errorf("%+v marshals to %q, %v, which is read as %+v", p, text, err, again)
	}
}

// FuzzPolicyText starts from values, so that it also meets values that no one would write as text.
func FuzzPolicyText(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0), uint8(0), int64(0), int64(0))
	f.Add(int64(65536), int64(100*time.Millisecond), int64(4096), uint8(holdfast.SyncPeriodic), int64(time.Second), int64(4<<20))
	f.Add(int64(1), int64(1), int64(0), uint8(holdfast.SyncEach), int64(0), int64(0))
	f.Add(int64(1), int64(0), int64(0), uint8(holdfast.SyncPeriodic), int64(1), int64(0))
	f.Add(int64(2), int64(0), int64(1), uint8(holdfast.SyncPeriodic), int64(0), int64(1))
	f.Add(int64(-1), int64(-1), int64(-1), uint8(255), int64(-4), int64(-1))
	f.Add(int64(1)<<30, int64(1)<<62, int64(1)<<30-1, uint8(holdfast.SyncPeriodic), int64(1)<<62, int64(1)<<40)
	f.Fuzz(func(t *testing.T, buffer, flush, flushBytes int64, mode uint8, every, bytes int64) {
		p := holdfast.Policy{Buffer: holdfast.Size(buffer), FlushEvery: time.Duration(flush), FlushBytes: holdfast.Size(flushBytes),
			Sync: holdfast.Sync{Mode: holdfast.SyncMode(mode), Every: time.Duration(every), Bytes: holdfast.Size(bytes)}}
		if err := p.Validate(); err != nil {
			checkSentence(t, err, "policy: buffer=", "policy: flush=", "policy: sync=")
			return
		}
		checkPolicyText(t, p)
		checkLoss(t, p)
	})
}

// checkLoss checks what holds for the loss of every policy. A power cut takes
// no less than the death of the process, and a bound is a bound.
func checkLoss(t *testing.T, p holdfast.Policy) {
	t.Helper()
	atLeast := func(a, b int64) bool { return a == holdfast.Unlimited || (b != holdfast.Unlimited && a >= b) }
	loss := p.Loss()
	if !atLeast(int64(loss.Power.Bytes), int64(loss.Process.Bytes)) || !atLeast(int64(loss.Power.Time), int64(loss.Process.Time)) {
		t.Errorf("%v: power cut %+v takes less than process crash %+v", p, loss.Power, loss.Process)
	}
	for _, b := range []holdfast.Bound{loss.Process, loss.Power} {
		if b.Bytes < holdfast.Unlimited || b.Time < holdfast.Unlimited || (b.None() != (b.Bytes == 0)) {
			t.Errorf("%v: bound %+v", p, b)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{
		"", "0", "1", "64KiB", "64k", "10MB", "64KB", "1.5k", "-1", "+1", "1 k", "9223372036854775807",
		"9223372036854775808", "8388607TiB", "8388608TiB", "k", "0x10", "1e3", "007", "1\x00", "٣",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := holdfast.ParseSize(text)
		if err != nil {
			if s != 0 {
				t.Errorf("ParseSize(%q) = %v beside %v", text, s, err)
			}
			checkSentence(t, err, "size \"")
			return
		}
		if again, err := holdfast.ParseSize(s.String()); s < 0 || err != nil || again != s {
			t.Errorf("ParseSize(%q) = %d; its text %q is read as %d, %v", text, int64(s), s, int64(again), err)
		}
	})
}
