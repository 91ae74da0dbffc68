package files

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/fault"
)

// TestDirectoryThatAnotherMakesMeanwhileIsUsed makes it when Mkdir is called.
func TestDirectoryThatAnotherMakesMeanwhileIsUsed(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *Set, w Write) (Result, error)) {
		d := fault.NewDisk()
		f := onDisk(t, d, Options{Policy: p, MkdirAll: true, Retry: once})
		d.Watch(func(c fault.DiskCall) {
			if c.Op == fault.DiskMkdir && c.End.IsZero() {
				d.MkdirAll(c.Path)
			}
		})
		if _, err := write(f, Write{Path: "/x/a", Data: []byte("data")}); err != nil {
			t.Error(err)
		}
		d.Watch(nil)
	})
}

// TestLostDirectoryIsAFailureOfMkdir also for the calls after the one that made it.
func TestLostDirectoryIsAFailureOfMkdir(t *testing.T) {
	f := onDisk(t, fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Path: "/", Times: 1, Err: syscall.EIO}), Options{Policy: holdfast.Durable(), MkdirAll: true})
	for range 2 {
		_, err := f.WriteFile(noContext, "/x/a", []byte("data"), Create)
		if e := (*Error)(nil); !errors.As(err, &e) || e.Op != "mkdir" || !errors.Is(err, syscall.EIO) {
			t.Errorf("%v", err)
		}
	}
}

// TestNamesThatNoSyncWasAskedForAreWritten ends the context when the last rename of a batch is made.
func TestNamesThatNoSyncWasAskedForAreWritten(t *testing.T) {
	d := fault.NewDisk()
	f := onDisk(t, d, Options{Policy: holdfast.Durable(), Workers: 1})
	ctx, cancel := context.WithCancel(noContext)
	d.Watch(func(c fault.DiskCall) {
		if c.Op == fault.DiskRename && !c.End.IsZero() && d.Count(fault.DiskRename) == 2 {
			cancel()
		}
	})
	results, err := f.WriteAll(ctx, one(Write{Path: "/a", Data: []byte("data"), Mode: Replace}, Write{Path: "/b", Data: []byte("data"), Mode: Replace}))
	d.Watch(nil)
	for _, r := range results.All() {
		if r.Outcome != holdfast.OutcomeWritten || !errors.Is(r.Err, context.Canceled) {
			t.Errorf("%+v; %v", r, err)
		}
	}
}

// TestUntouchedFileIsNotStripped has a Replace that could not keep the owner fail.
func TestUntouchedFileIsNotStripped(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *Set, w Write) (Result, error)) {
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskChown, Err: syscall.EPERM}, fault.DiskFault{Op: fault.DiskRename, Err: syscall.EIO, Times: 1})
		f := onDisk(t, d, Options{Policy: p, Retry: once})
		d.SetOwner(7)
		d.WriteFile("/a", []byte("old"), 0o644)
		d.SetOwner(8)
		w := Write{Path: "/a", Data: []byte("new"), Mode: Replace}
		if r, err := write(f, w); !errors.Is(err, syscall.EIO) || r.Stripped || r.Outcome != holdfast.OutcomeUntouched {
			t.Errorf("%+v", r)
		}
		if r, err := write(f, w); err != nil || !r.Stripped {
			t.Errorf("%+v", r)
		}
	})
}
