//go:build go1.25

package crashsuite

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// A toy is the least that keeps all promises, and one flaw.
type toy struct {
	g      *Ground
	file   holdfast.File
	leak   *os.File // by the flaw "leaks"
	flaw   string
	lock   chan struct{} // a bubble sees who waits for it
	writes int
	held   []byte // by the flaw "memory"
	failed bool
	final  error
	closed bool
}

func openToy(g *Ground, flaw string) (Subject, error) {
	t := &toy{g: g, flaw: flaw, lock: make(chan struct{}, 1)}
	var err error
	if g.Disk != nil {
		t.file, err = g.File("toy")
	} else {
		t.file, err = os.OpenFile(filepath.Join(g.Dir, "toy"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	}
	if err == nil && flaw == "leaks" {
		if g.Disk != nil {
			_, err = g.File("leak")
		} else {
			t.leak, err = os.Create(filepath.Join(g.Dir, "leak"))
		}
	}
	return t, err
}

// call makes one call at a time, and none that is refused.
func (t *toy) call(do func() error) error {
	t.lock <- struct{}{}
	defer func() { <-t.lock }()
	switch {
	case t.closed && t.flaw != "never closed":
		return holdfast.ErrClosed
	case t.final != nil && t.flaw != "tries again":
		return t.final
	}
	if t.flaw != "forgets a panic" {
		t.final = errPlanned
	}
	err := do()
	if t.final == errPlanned {
		t.final = nil
	}
	return err
}

func (t *toy) Write(p []byte) (n int, err error) {
	err = t.call(func() error {
		t.writes++
		if t.flaw == "memory" {
			t.held = append(t.held, p...)
			n = len(p)
			return nil
		}
		if n, err = t.write(p); err != nil {
			switch {
			case t.flaw == "says nothing":
				n, err = len(p), nil
			case t.flaw == "a full disk is final":
				t.final = err
			}
			return err
		}
		if t.flaw == "twice" && t.writes == 7 {
			t.write(p)
		}
		if t.g.Policy.Sync.Waits() && t.flaw != "no sync" {
			return t.sync()
		}
		return nil
	})
	return n, err
}

func (t *toy) write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = t.file.Write(p[n:])
		n += k
		if errors.Is(err, syscall.EINTR) {
			err = nil
		}
	}
	if err != nil && !t.failed {
		t.tell(err)
	}
	t.failed = err != nil
	return n, err
}

func (t *toy) sync() error {
	err := t.file.Sync()
	if err != nil {
		t.final = err
		t.tell(err)
	}
	return err
}

// tell tells a failure in a goroutine of its own.
func (t *toy) tell(err error) {
	if t.flaw == "tells with a lock" {
		t.g.OnError(err)
		return
	}
	go t.g.OnError(err)
	if t.flaw == "tells twice" {
		go t.g.OnError(err)
	}
}

func (t *toy) Sync() error { return t.call(t.sync) }

func (t *toy) Close() (err error) {
	t.lock <- struct{}{}
	defer func() { <-t.lock }()
	if t.closed {
		return holdfast.ErrClosed
	}
	t.closed = true
	defer func() { err = errors.Join(err, t.file.Close()) }()
	err = t.final
	if t.held != nil {
		_, err = t.write(t.held)
	}
	if err == nil && t.g.Policy.Sync.Mode != holdfast.SyncNever {
		err = t.sync()
	}
	return err
}

func toyOpener(flaw string) Opener {
	return Opener{
		Name:     "toy",
		Open:     func(g *Ground) (Subject, error) { return openToy(g, flaw) },
		Read:     func(_ *testing.T, files map[string][]byte) ([][]byte, error) { return Lines(files["toy"]), nil },
		Policies: func(p holdfast.Policy) bool { return p.Buffer == 0 && p.Sync.Bytes == 0 && p.Sync.Every == 0 },
	}
}

func TestPromisesCanBeKept(t *testing.T) { Run(t, toyOpener("")) }

// TestBrokenPromisesAreFound has one flaw at a time.
func TestBrokenPromisesAreFound(t *testing.T) {
	for _, x := range []struct{ flaw, breaks, policy string }{
		{"memory", Acknowledged, "buffer=0,sync=never"},
		{"no sync", Acknowledged, "buffer=0,sync=group"},
		{"memory", Killed, "buffer=0,sync=never"},
		{"twice", Whole, "buffer=0,sync=never"},
		{"says nothing", Told, "buffer=0,sync=never"},
		{"tries again", FinalSync, "buffer=0,sync=group"},
		{"tells twice", Heard, "buffer=0,sync=never"},
		{"tells with a lock", Within, "buffer=0,sync=never"},
		{"a full disk is final", Full, "buffer=0,sync=never"},
		{"says nothing", Leaves, "buffer=0,sync=group"},
		{"leaks", Leaves, "buffer=0,sync=never"},
		{"leaks", LeavesReal, "buffer=0,sync=never"},
		{"never closed", Closed, "buffer=0,sync=never"},
		{"forgets a panic", Panics, "buffer=0,sync=never"},
	} {
		t.Run(x.flaw+", "+x.breaks, func(t *testing.T) {
			if x.breaks == LeavesReal && runtime.GOOS != "linux" {
				t.Skip("only Linux names a program's open files")
			}
			p, err := holdfast.ParsePolicy(x.policy)
			if err != nil {
				t.Fatal(err)
			}
			for _, promise := range promises {
				if promise.name != x.breaks {
					continue
				}
				found := promise.check(t, toyOpener(x.flaw), p)
				if len(found) == 0 {
					t.Fatal("nothing is found")
				}
				t.Log(found[0])
			}
		})
	}
}
