//go:build go1.25

package files_test

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// TestInterruptionsThatNeverEndEndACall has signals interrupt each call of one kind, from the start or
// from the third on.
func TestInterruptionsThatNeverEndEndACall(t *testing.T) {
	isolate.Once(t)
	for _, op := range fault.DiskOps() {
		for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable(), holdfast.EachDurable(), {Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}} {
			for _, first := range []int{1, 3} {
				if first > 1 && testing.Short() {
					continue
				}
				t.Run(fmt.Sprint(op, "/", p, "/", first), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						disk := replacedLink(t)
						disk.MkdirAll("/d")
						disk.Add(fault.DiskFault{Op: op, First: first, Err: syscall.EINTR})
						var calls, most atomic.Int64
						disk.Watch(func(fault.DiskCall) {
							if calls.Add(1) > 50_000 { // 1000 tries of a call take far less
								most.Store(calls.Load())
								disk.Mend()
							}
						})
						f := newSet(disk, files.Options{Policy: p, MkdirAll: true, Handles: 8, Lines: true, Retry: once})
						each := func(what string, call func()) {
							calls.Store(0)
							if call(); most.Swap(0) > 0 {
								t.Errorf("%s does not end", what)
							}
						}
						for _, path := range []string{"/d/a", "/logs/a.lnk", "/new/d/a"} {
							each("Append to "+path, func() { f.Append(noContext, path, []byte("x\n")) })
							each("Sync", func() { f.Sync(noContext) })
							each("Release", func() { f.Release(noContext, path) })
							for _, mode := range wholeModes {
								each(mode.String(), func() { f.WriteFile(noContext, path, []byte("x\n"), mode) })
							}
						}
						each("WriteAll", func() {
							f.WriteAll(noContext, one(files.Write{Path: "/d/a", Mode: files.Replace}, files.Write{Path: "/d/b", Mode: files.Replace}, files.Write{Path: "/d/c"}))
						})
						each("Close", func() { f.Close() })
					})
				})
			}
		}
	}
}
