package fault_test

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

func TestSourceTakesItsTurns(t *testing.T) {
	s := fault.NewSource([]byte("abcdef"),
		fault.Turn{Take: 1}, fault.Turn{}, fault.Turn{Take: 2, Err: syscall.EIO}, fault.Turn{Take: fault.All, Lie: 1})
	read := func(want string, wantN int, wantErr error) {
		t.Helper()
		p := make([]byte, 4)
		n, err := s.Read(p)
		if n != wantN || err != wantErr || string(p[:len(want)]) != want {
			t.Errorf("Read = %d %q, %v; want %d %q, %v", n, p, err, wantN, want, wantErr)
		}
	}
	read("a", 1, nil)
	read("", 0, nil)
	read("bc", 2, syscall.EIO)
	read("def", 4, nil)
	read("", 0, io.EOF)
	if n := s.Reads(); n != 5 {
		t.Errorf("Reads = %d, want 5", n)
	}
}

func TestSourceEndsWithTheGivenError(t *testing.T) {
	s := fault.NewSource([]byte("ab"))
	s.EndWith(syscall.EIO)
	p := make([]byte, 4)
	if n, err := s.Read(p); n != 2 || err != nil {
		t.Errorf("Read = %d, %v; want 2", n, err)
	}
	if n, err := s.Read(p); n != 0 || err != syscall.EIO {
		t.Errorf("Read = %d, %v; want 0, EIO", n, err)
	}
}

func TestSourceRecordsWhatItsUserMustNotDo(t *testing.T) {
	s := fault.NewSource(nil)
	s.FailClose(syscall.EIO)
	s.Read(make([]byte, 1))
	s.Read(make([]byte, 1))
	if err := s.Close(); !errors.Is(err, syscall.EIO) || !s.Closed() {
		t.Errorf("Close = %v, Closed = %v; want EIO, true", err, s.Closed())
	}
	s.Read(nil)
	s.Close()
	want := []string{"read after an error", "read after close", "close after close"}
	if got := s.Violations(); !slices.Equal(got, want) {
		t.Errorf("violations %q, want %q", got, want)
	}
	s = fault.NewSource([]byte("a"))
	s.Read(nil)
	if got := s.Violations(); !slices.Equal(got, []string{"read of no bytes"}) {
		t.Errorf("violations %q", got)
	}
}
