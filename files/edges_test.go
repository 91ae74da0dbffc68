//go:build go1.25

package files_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// TestDirectoryThatAnotherMakesMeanwhileIsUsed makes it when Mkdir is called.
func TestDirectoryThatAnotherMakesMeanwhileIsUsed(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		d := fault.NewDisk()
		f := onDisk(t, d, files.Options{Policy: p, MkdirAll: true, Retry: once})
		d.Watch(func(c fault.DiskCall) {
			if c.Op == fault.DiskMkdir && c.End.IsZero() {
				d.MkdirAll(c.Path)
			}
		})
		if _, err := write(f, files.Write{Path: "/x/a", Data: []byte("data")}); err != nil {
			t.Error(err)
		}
		d.Watch(nil)
	})
}

// TestLostDirectoryIsAFailureOfMkdir also for the calls after the one that made it.
func TestLostDirectoryIsAFailureOfMkdir(t *testing.T) {
	f := onDisk(t, fault.NewDisk(fault.DiskFault{Op: fault.DiskSync, Path: "/", Times: 1, Err: syscall.EIO}), files.Options{Policy: holdfast.Durable(), MkdirAll: true})
	for range 2 {
		_, err := f.WriteFile(noContext, "/x/a", []byte("data"), files.Create)
		if e := (*files.Error)(nil); !errors.As(err, &e) || e.Op != "mkdir" || !errors.Is(err, syscall.EIO) {
			t.Errorf("%v", err)
		}
	}
}

// TestNamesThatNoSyncWasAskedForAreWritten ends the context when the last rename of a batch is made.
func TestNamesThatNoSyncWasAskedForAreWritten(t *testing.T) {
	d := fault.NewDisk()
	f := onDisk(t, d, files.Options{Policy: holdfast.Durable(), Workers: 1})
	ctx, cancel := context.WithCancel(noContext)
	d.Watch(func(c fault.DiskCall) {
		if c.Op == fault.DiskRename && !c.End.IsZero() && d.Count(fault.DiskRename) == 2 {
			cancel()
		}
	})
	results, err := f.WriteAll(ctx, one(files.Write{Path: "/a", Data: []byte("data"), Mode: files.Replace}, files.Write{Path: "/b", Data: []byte("data"), Mode: files.Replace}))
	d.Watch(nil)
	for _, r := range results.All() {
		if r.Outcome != holdfast.OutcomeWritten || !errors.Is(r.Err, context.Canceled) {
			t.Errorf("%+v; %v", r, err)
		}
	}
}

// TestUntouchedFileIsNotStripped has a Replace that could not keep the owner fail.
func TestUntouchedFileIsNotStripped(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskChown, Err: syscall.EPERM}, fault.DiskFault{Op: fault.DiskRename, Err: syscall.EIO, Times: 1})
		f := onDisk(t, d, files.Options{Policy: p, Retry: once})
		d.SetOwner(7)
		d.WriteFile("/a", []byte("old"), 0o644)
		d.SetOwner(8)
		w := files.Write{Path: "/a", Data: []byte("new"), Mode: files.Replace}
		if r, err := write(f, w); !errors.Is(err, syscall.EIO) || r.Stripped || r.Outcome != holdfast.OutcomeUntouched {
			t.Errorf("%+v", r)
		}
		if r, err := write(f, w); err != nil || !r.Stripped {
			t.Errorf("%+v", r)
		}
	})
}

// TestEmptiedFileIsPartial has the write after the truncation fail.
func TestEmptiedFileIsPartial(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		d := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Err: syscall.EIO})
		f := onDisk(t, d, files.Options{Policy: p, Retry: once})
		d.WriteFile("/a", []byte("old"), 0o644)
		r, err := write(f, files.Write{Path: "/a", Data: []byte("new"), Mode: files.Truncate})
		if data, _ := d.ReadFile("/a"); len(data) > 0 || !errors.Is(err, syscall.EIO) || r.Outcome != holdfast.OutcomePartial {
			t.Errorf("%q: %+v", data, r)
		}
	})
}

// TestTruncateEmptiesWhatCameSinceTheFirstLook at an empty file.
func TestTruncateEmptiesWhatCameSinceTheFirstLook(t *testing.T) {
	eachWay(t, func(t *testing.T, p holdfast.Policy, write func(f *files.Set, w files.Write) (files.Result, error)) {
		d := fault.NewDisk()
		f := onDisk(t, d, files.Options{Policy: p})
		d.WriteFile("/a", nil, 0o644)
		looks := 0
		d.Watch(func(c fault.DiskCall) {
			if c.Op == fault.DiskStatFD && c.Path == "/a" && c.End.IsZero() {
				if looks++; looks == 2 {
					d.WriteFile("/a", []byte("another's"), 0o644)
				}
			}
		})
		_, err := write(f, files.Write{Path: "/a", Data: []byte("new"), Mode: files.Truncate})
		d.Watch(nil)
		if data, _ := d.ReadFile("/a"); err != nil || looks < 2 || string(data) != "new" {
			t.Errorf("%q after %d looks, %v", data, looks, err)
		}
	})
}

// TestNothingIsWrittenToAFileThatCreateRemoved has a Create fail in the middle, and another call
// that opened the file meanwhile wait for it.
func TestNothingIsWrittenToAFileThatCreateRemoved(t *testing.T) {
	for name, write := range map[string]func(f *files.Set) error{
		"append": func(f *files.Set) error { return f.Append(noContext, "/a", []byte("its")) },
		"write": func(f *files.Set) error {
			_, err := f.WriteFile(noContext, "/./a", []byte("its"), files.Append)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := fault.NewDisk(fault.DiskFault{Op: fault.DiskWrite, Times: 1, Take: 1},
					fault.DiskFault{Op: fault.DiskWrite, First: 2, Times: 1, Err: syscall.EIO, Delay: time.Minute})
				f := onDisk(t, d, files.Options{Retry: once})
				go func() {
					if r, err := f.WriteFile(noContext, "/a", []byte("ours"), files.Create); !errors.Is(err, syscall.EIO) || r.Outcome != holdfast.OutcomeUntouched {
						t.Errorf("%+v", r)
					}
				}()
				synctest.Wait()
				opens := d.Count(fault.DiskOpen)
				if err := write(f); err != nil || d.Count(fault.DiskOpen) < opens+2 {
					t.Errorf("%d opens, %v", d.Count(fault.DiskOpen)-opens, err)
				}
				if data, there := d.ReadFile("/a"); string(data) != "its" {
					t.Errorf("%q, %v", data, there)
				}
			})
		})
	}
}
