package fault

import (
	"io"
	"sync"
	"time"
)

// A Turn scripts one Read of a Source. It gives at most Take bytes, or All that there is room
// for, and returns Err with them. The zero Turn gives nothing and no error.
type Turn struct {
	Take  int
	Err   error
	Delay time.Duration // how long it takes before it gives anything
	Lie   int           // is added to the number of bytes that Read returns
}

// A Source is a reader in memory. Any goroutine may call any method at any time;
// what a reader of sources must not do is recorded as a violation.
type Source struct {
	mu       sync.Mutex
	data     []byte // the bytes left
	turns    []Turn // of the Reads to come
	reads    int
	inFlight int
	end      error // the error after data
	ended    bool  // an error was returned
	closed   bool
	closeErr error
	wrong    []string
}

// NewSource returns a source of data. Its Reads take these turns. After them, each returns
// as much as there is room for, until io.EOF.
func NewSource(data []byte, turns ...Turn) *Source {
	return &Source{data: data, turns: turns, end: io.EOF}
}

// EndWith lets err come after the data, and not io.EOF.
func (s *Source) EndWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = err
}

// FailClose lets Close return err.
func (s *Source) FailClose(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeErr = err
}

// Read takes the next turn.
func (s *Source) Read(p []byte) (int, error) {
	turn := s.start(len(p))
	time.Sleep(turn.Delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	room := min(len(p), len(s.data))
	if turn.Take != All {
		room = min(room, turn.Take)
	}
	n := copy(p, s.data[:room])
	if n == 0 && turn.Take != 0 && turn.Err == nil && len(p) > 0 {
		turn.Err = s.end
	}
	s.data = s.data[n:]
	s.ended = s.ended || turn.Err != nil
	return n + turn.Lie, turn.Err
}

// start counts a Read in, judges it, and returns its turn.
func (s *Source) start(room int) Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judgeLocked(room)
	s.reads++
	s.inFlight++
	if len(s.turns) == 0 {
		return Turn{Take: All}
	}
	turn := s.turns[0]
	s.turns = s.turns[1:]
	return turn
}

func (s *Source) judgeLocked(room int) {
	switch {
	case s.closed:
		s.wrong = append(s.wrong, "read after close")
	case s.inFlight > 0:
		s.wrong = append(s.wrong, "two reads at once")
	case s.ended:
		s.wrong = append(s.wrong, "read after an error")
	case room == 0:
		s.wrong = append(s.wrong, "read of no bytes")
	}
}

// Close ends the source's use.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.wrong = append(s.wrong, "close after close")
	}
	if s.inFlight > 0 {
		s.wrong = append(s.wrong, "close beside a read")
	}
	s.closed = true
	return s.closeErr
}

// Closed reports whether Close was called.
func (s *Source) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Reads returns how many Reads were started.
func (s *Source) Reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// Violations returns what the source's user must not do and did. It is a Read of no bytes, after
// an error, beside another one, or after or beside Close.
func (s *Source) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.wrong...)
}
