package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/cmd/internal/place"
)

func TestClockReportsTheLargestJump(t *testing.T) {
	type look struct{ day, monotonic time.Duration }
	check := func(want time.Duration, looks ...look) {
		t.Helper()
		var c clock
		for _, l := range looks {
			c.take(l.day, l.monotonic)
		}
		if c.jump != want {
			t.Errorf("%v: a jump of %v, want %v", looks, c.jump, want)
		}
	}
	check(0)
	check(0, look{time.Hour, time.Hour})
	check(0, look{time.Minute + jumpLeast - 1, time.Minute}) // slewed
	check(0, look{time.Minute - jumpLeast + 1, time.Minute})
	check(jumpLeast, look{time.Minute + jumpLeast, time.Minute})
	check(-jumpLeast, look{time.Minute - jumpLeast, time.Minute})
	check(time.Hour, look{time.Second, time.Second}, look{time.Hour + 2*time.Second, 2 * time.Second}) // set ahead, or the machine slept
	check(-time.Hour, look{time.Second - time.Hour, time.Second}, look{2 * time.Second, 2 * time.Second})
	check(-2*time.Hour, look{time.Hour, 0}, look{-2 * time.Hour, 0}, look{time.Hour, 0})
}

func TestClockOfThisMachineDoesNotJump(t *testing.T) {
	c := clock{begun: time.Now()}
	c.look()
	if c.jump != 0 {
		t.Skipf("somebody has set this machine's clock by %v", c.jump)
	}
}

func TestFitsMemory(t *testing.T) {
	cell := result.Cell{Name: "policy=buffer=1MiB", Policy: holdfast.Buffered(holdfast.MiB), RecordBytes: 1 << 20, Writers: 4}
	needs := int64(2<<20 + 2*4<<20)
	if err := fitsMemory([]result.Cell{{Name: "empty"}, cell}, needs+1); err != nil {
		t.Error(err)
	}
	err := fitsMemory([]result.Cell{{Name: "empty"}, cell}, needs)
	var r *cli.Refusal
	if !errors.As(err, &r) || r.Code != cli.ExitCannot || err.Error() != "policy=buffer=1MiB needs up to 10 MiB of memory, and the limit of this process's control group is 10 MiB" {
		t.Errorf("refused with %v", err)
	}
}

// TestRefusalsOfARun plants errors that need a disk of their own kind.
func TestRefusalsOfARun(t *testing.T) {
	ground, err := trial.OpenWorkDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer ground.Close()
	check := func(err error, code int, hint string) {
		t.Helper()
		s := &Session{ground: ground}
		var r *cli.Refusal
		if got := s.Refuse(err); !errors.As(got, &r) || r.Code != code || !strings.HasPrefix(r.Hint, hint) || !strings.Contains(r.Error(), err.Error()) && code != cli.ExitInterrupted {
			t.Errorf("%v: refused with %v, %+v", err, got, r)
		}
	}
	check(fmt.Errorf("cell, round 1: %w", syscall.EDQUOT), cli.ExitCannot, place.HintRoom)
	check(fmt.Errorf("cell, round 1: %w", syscall.ENOSPC), cli.ExitCannot, place.HintRoom)
	check(&trial.RoomError{Dir: "/", Free: 1, Need: 2}, cli.ExitCannot, place.HintRoom)
	check(&outputError{syscall.EDQUOT}, cli.ExitCannot, "name a new file")
	check(&trial.CacheError{Asked: result.Cold}, cli.ExitCannot, "use --cache try-cold to measure anyway and report the cached part, or --cache drop to empty the whole page cache (root)")
	check(&trial.CacheError{Asked: result.Dropped}, cli.ExitCannot, "--cache try-cold measures anyway")
	check(&trial.ContentError{Offset: 7, Reason: "no record begins"}, cli.ExitNotMet, "this must not happen")
	check(fmt.Errorf("cell, round 1: %w", syscall.EIO), cli.ExitCannot, "the disk failed")
	check(fmt.Errorf("cell, round 1: %w", syscall.EFBIG), cli.ExitCannot, "the file system, or ulimit -f, allows no file as large as that")
	check(errors.New("cell, round 1: no reason"), cli.ExitCannot, "only a directory of its own was written to")
	check(context.Canceled, cli.ExitInterrupted, "with -o results.jsonl")
	if err := (&Session{ground: ground}).Refuse(nil); err != nil {
		t.Error(err)
	}
}
