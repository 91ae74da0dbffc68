package costs

import (
	"context"
	"errors"
	"os"
	"runtime"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

func emptyTask(n int64) trial.Task {
	return work(n, difference{with: probe.EmptyCalls, without: emptyLoop})
}

func goEmptyTask(n int64) trial.Task {
	return work(n, difference{with: probe.EmptyScheduledCalls, without: emptyLoop})
}

// faultTask touches each page once for the fault, and a second time for the cost of the touch
// alone. As much memory is had and given back before: a virtual machine's host finds the pages for
// it only then.
func faultTask(n int64) trial.Task {
	n = max(n, turns)
	page := os.Getpagesize()
	do := func(_ context.Context, c *trial.Clock) error {
		memory, err := probe.MapFresh(int(n) * page)
		if err != nil {
			return err
		}
		at := 0 // the first page of the turn
		first := func(n int) error {
			touch(memory[at:at+n*page], page)
			return nil
		}
		second := func(n int) error {
			touch(memory[at:at+n*page], page)
			at += n * page
			return nil
		}
		err = difference{with: first, without: second}.measure(c, trial.Work, n)
		return errors.Join(err, probe.Unmap(memory))
	}
	return trial.Task{Make: func(string) error {
		memory, err := probe.MapFresh(int(n) * page)
		if err != nil {
			return err
		}
		touch(memory, os.Getpagesize())
		return probe.Unmap(memory)
	}, Do: do}
}

func touch(memory []byte, page int) {
	for i := 0; i < len(memory); i += page {
		memory[i] = 1
	}
}

// withProcs does it with another GOMAXPROCS, which no other arm sees: they are run
// one at a time.
func withProcs(n int, do func() error) error {
	before := runtime.GOMAXPROCS(n)
	defer runtime.GOMAXPROCS(before)
	return do()
}

// switchTask hands a token to and fro: each way is one switch.
func switchTask(procs int, locked bool) func(n int64) trial.Task {
	return func(n int64) trial.Task {
		return trial.Task{Do: func(_ context.Context, c *trial.Clock) error {
			return withProcs(procs, func() error {
				there, back := make(chan struct{}), make(chan struct{})
				go onThread(locked, func() {
					for range there {
						back <- struct{}{}
					}
				})
				defer close(there)
				with := func(n int) error {
					for range n {
						there <- struct{}{}
						<-back
					}
					return nil
				}
				var err error
				onThread(locked, func() {
					err = difference{with: with, without: emptyLoop, each: 2}.measure(c, trial.Work, n)
				})
				return err
			})
		}}
	}
}

// onThread does it, locked to the goroutine's thread or not.
func onThread(locked bool, do func()) {
	if locked {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	do()
}

// threadTask has two threads on one CPU wake each other. A way to and fro is two
// switches and four calls: what the calls take when no other thread is there is taken
// off.
func threadTask(n int64) trial.Task {
	return trial.Task{Do: func(_ context.Context, c *trial.Clock) error {
		// With one processor of Go's, the woken goroutine would wait for the scheduler
		// too.
		return withProcs(max(2, runtime.GOMAXPROCS(0)), func() error {
			b, err := newBells()
			if err != nil {
				return err
			}
			pinned, over := make(chan error), make(chan struct{})
			done := make(chan error, 2)
			go func() { done <- b.echo(pinned, over) }()
			if err := <-pinned; err != nil {
				return errors.Join(err, b.close())
			}
			go func() {
				err := onPinnedThread(func() error { return b.difference().measure(c, trial.Work, n) })
				close(over)
				done <- errors.Join(err, b.there.Ring())
			}()
			return errors.Join(<-done, <-done, b.close())
		})
	}}
}

// bells are the pipes by which the threads wake each other, and one that the same thread rings and
// waits for.
type bells struct{ there, back, alone *probe.Bell }

func newBells() (b bells, err error) {
	for _, bell := range []**probe.Bell{&b.there, &b.back, &b.alone} {
		if *bell, err = probe.NewBell(); err != nil {
			return b, errors.Join(err, b.close())
		}
	}
	return b, nil
}

func (b bells) close() (err error) {
	for _, bell := range []*probe.Bell{b.there, b.back, b.alone} {
		if bell != nil {
			err = errors.Join(err, bell.Close())
		}
	}
	return err
}

// onPinnedThread does it on a thread that ends with the goroutine.
func onPinnedThread(do func() error) error {
	runtime.LockOSThread()
	if err := probe.PinThread(); err != nil {
		return err
	}
	return do()
}

// echo answers every ring, until one comes when over is closed.
func (b bells) echo(pinned chan<- error, over <-chan struct{}) error {
	runtime.LockOSThread()
	err := probe.PinThread()
	pinned <- err
	for err == nil {
		if err = b.there.Wait(); err != nil {
			return err
		}
		select {
		case <-over:
			return nil
		default:
			err = b.back.Ring()
		}
	}
	return err
}

func (b bells) difference() difference {
	with := func(n int) error {
		for range n {
			if err := ringAndWait(b.there, b.back); err != nil {
				return err
			}
		}
		return nil
	}
	without := func(n int) error {
		for range 2 * n {
			if err := ringAndWait(b.alone, b.alone); err != nil {
				return err
			}
		}
		return nil
	}
	return difference{with: with, without: without, each: 2}
}

func ringAndWait(ring, wait *probe.Bell) error {
	if err := ring.Ring(); err != nil {
		return err
	}
	return wait.Wait()
}

var notLinux = onlyLinux("measured by Linux's own calls")

var kernelRungs = append([]rung{
	{name: emptyRung, level: &emptyLevel, method: "getppid, " + bareLoop, does: "calls getppid(2) by RawSyscall", count: 200_000, each: 100, missing: notLinux, task: emptyTask},
	{name: goEmptyRung, level: &emptyLevel, method: "by Syscall, " + bareLoop, does: "calls getppid(2) by Syscall, which tells the scheduler", count: 200_000, each: 130, missing: notLinux, task: goEmptyTask},
	{name: faultRung, method: "first touch, less the second", does: "touches fresh memory, a page at a time", count: 8_000, each: 1500, missing: notLinux, task: faultTask},
	{name: threadRung, level: &switchLevel, method: "pipes on one CPU, less the calls alone", does: "two threads on one CPU wake each other", count: 10_000, each: 8000, missing: notLinux, task: threadTask},
}, goroutineRungs()...)

// goroutineRungs are Go's own switches. Where there are more CPUs, its scheduler may
// leave two goroutines that wait for each other on one of them, and mostly does.
// Only goroutines locked to their threads must wake a thread each time.
func goroutineRungs() []rung {
	const half = "half a round trip"
	rungs := []rung{
		{name: switchRung, method: half, does: "hands a token to another goroutine, over unbuffered channels and with GOMAXPROCS 1", count: 50_000, each: 250, task: switchTask(1, false)},
		{name: crossRung, method: half, does: "the same with GOMAXPROCS 2: the other goroutine may run on the other CPU", count: 50_000, each: 400, task: switchTask(2, false)},
		{name: lockedRung, method: half, does: "the same with each goroutine locked to a thread of its own", count: 5_000, each: 10_000, task: switchTask(2, true)},
	}
	if runtime.NumCPU() < 2 {
		rungs[1].missing = "there is one CPU only"
		rungs[2].missing = rungs[1].missing
	}
	return rungs
}
