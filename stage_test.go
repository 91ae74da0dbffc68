package holdfast_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// contractPolicies are the policies that the whole contract is tested under.
var contractPolicies = []string{
	"buffer=0,sync=never",
	"buffer=16B,sync=never",
	"buffer=4KiB,sync=never",
	"buffer=256KiB,sync=never",
	"buffer=4KiB,flush=10ms,sync=never",
	"buffer=256KiB,flush=10ms,sync=never",
	"buffer=0,sync=10ms",
	"buffer=4KiB,sync=10ms",
	"buffer=4KiB,flush=5ms,sync=20ms",
	"buffer=256KiB,flush=20ms,sync=5ms",
	"buffer=256KiB,flush=4KiB,sync=never",
	"buffer=4KiB,flush=5ms/100B,sync=never",
	"buffer=0,sync=100B",
	"buffer=4KiB,sync=1KiB",
	"buffer=4KiB,flush=100B,sync=20ms/300B",
	"buffer=256KiB,sync=5ms/1MiB",
	"buffer=0,sync=close",
	"buffer=4KiB,sync=close",
	"buffer=0,sync=group",
	"buffer=64KiB,sync=group",
	"buffer=64KiB,flush=5ms,sync=group",
	"buffer=0,sync=each",
	"buffer=64KiB,sync=each",
}

// A stage is one Writer under test, on the fault file in a bubble of fake time
// or on a real file.
type stage struct {
	*testing.T
	policy holdfast.Policy
	w      *holdfast.Writer
	f      *fault.File // nil on a real file
	path   string      // "" on the fault file
}

// onEveryPolicy runs a test under every policy, on the fault file and on a real one.
func onEveryPolicy(t *testing.T, test func(s *stage)) {
	inMemory(t, test)
	onFiles(t, test)
}

// inMemory runs a test under every policy on a fault file with these faults.
func inMemory(t *testing.T, test func(s *stage), faults ...fault.Fault) {
	for _, text := range contractPolicies {
		t.Run("memory/"+text, func(t *testing.T) {
			watch(t)
			synctest.Test(t, func(t *testing.T) {
				s := &stage{T: t, f: fault.New(faults...)}
				s.open(text, func(p holdfast.Policy) (*holdfast.Writer, error) { return holdfast.New(s.f, p) })
				test(s)
				s.end()
			})
		})
	}
}

func onFiles(t *testing.T, test func(s *stage)) {
	for _, text := range contractPolicies {
		t.Run("file/"+text, func(t *testing.T) {
			watch(t)
			s := &stage{T: t, path: filepath.Join(t.TempDir(), "file")}
			s.open(text, func(p holdfast.Policy) (*holdfast.Writer, error) { return holdfast.Create(s.path, p) })
			test(s)
			s.end()
		})
	}
}

// watch says which test hangs: a Writer that spins stops the clock of its bubble, and on a real file only the real clock runs.
func watch(t *testing.T) {
	hang := time.AfterFunc(2*time.Minute, func() { panic("hangs: " + t.Name()) })
	t.Cleanup(func() { hang.Stop() })
}

func (s *stage) open(text string, open func(p holdfast.Policy) (*holdfast.Writer, error)) {
	s.Helper()
	p, err := holdfast.ParsePolicy(text)
	if err != nil {
		s.Fatal(err)
	}
	s.policy = p
	if s.w, err = open(p); err != nil {
		s.Fatal(err)
	}
}

// end closes the Writer, if the test has not, and checks what must hold whatever
// the test did.
func (s *stage) end() {
	s.Helper()
	s.w.Close()
	s.noGoroutines()
	if s.f == nil {
		return
	}
	for _, v := range s.f.Violations() {
		s.Errorf("violation: %s", v)
	}
	if n := s.f.Count(fault.Close); n != 1 {
		s.Errorf("the file was closed %d times", n)
	}
}

// noGoroutines checks that no goroutine of a Writer is left.
func (s *stage) noGoroutines() {
	s.Helper()
	if left := goroutinesLeft(s.f != nil); left != "" {
		s.Errorf("goroutines are left:\n%s", left)
	}
}

// goroutinesLeft returns the stacks of goroutines that run code of package holdfast, once
// those that are about to end have had their chance. No call may be on its way.
func goroutinesLeft(inBubble bool) (left string) {
	for range 1000 {
		if inBubble {
			synctest.Wait()
		}
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left = ""
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "github.com/holdfast-go/holdfast.") {
				left += stack + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		runtime.Gosched()
	}
	return left
}

// content returns what the kernel has of the file.
func (s *stage) content() []byte {
	s.Helper()
	if s.f != nil {
		return s.f.ProcessCrash()
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		s.Fatal(err)
	}
	return data
}

func (s *stage) holds(want []byte) {
	s.Helper()
	if got := s.content(); !bytes.Equal(got, want) {
		s.Errorf("the file holds %d bytes, want %d; they differ from byte %d on", len(got), len(want), firstDifference(got, want))
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// marks returns the watermarks as text.
func (s *stage) marks() string {
	return fmt.Sprintf("%d ≥ %d ≥ %d", s.w.Written(), s.w.Flushed(), s.w.Durable())
}

// takes checks the result of a call that is given n bytes: s.takes(3)(w.Write(p)).
func (s *stage) takes(want int) func(n int, err error) {
	s.Helper()
	return func(n int, err error) {
		s.Helper()
		if n != want || err != nil {
			s.Fatalf("n = %d, %v; want %d", n, err, want)
		}
	}
}

// refuses checks the result of a call that must take nothing.
func (s *stage) refuses(want error) func(n int, err error) {
	s.Helper()
	return func(n int, err error) {
		s.Helper()
		if n != 0 || !errors.Is(err, want) {
			s.Fatalf("n = %d, %v; want 0, %v", n, err, want)
		}
	}
}

func (s *stage) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// pattern returns a record that holds its stream (0 to 7), its number and its
// size. No piece of another record can look like it, because only a first byte
// has the highest bit set.
func pattern(stream byte, number, size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(number*31+i*7+int(stream)*3) & 0x7f
	}
	if size > 0 {
		p[0] = 0x80 | stream<<4 | byte(number)&0x0f
	}
	if size > 1 {
		p[1] = byte(number) & 0x7f
	}
	return p
}

// inOrder checks that data is made of whole records, each stream's in its order
// and all of them: counts[i] of stream i.
func (s *stage) inOrder(data []byte, counts ...int) {
	s.Helper()
	next := make([]int, 8)
	for at := 0; at < len(data); {
		end := at + 1
		for end < len(data) && data[end] < 0x80 {
			end++
		}
		stream := data[at] >> 4 & 7
		if want := pattern(stream, next[stream], end-at); data[at] < 0x80 || !bytes.Equal(data[at:end], want) {
			s.Fatalf("byte %d: no whole record %d of stream %d", at, next[stream], stream)
		}
		next[stream]++
		at = end
	}
	for stream, want := range counts {
		if next[stream] != want {
			s.Errorf("stream %d has %d records, want %d", stream, next[stream], want)
		}
	}
}
