//go:build go1.25

package rotate

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/permission"
)

// aList lets user 1001 read; the group's and others' permissions stay.
var aList = []byte("\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\xe9\x03\x00\x00" +
	"\x04\x00\x04\x00\xff\xff\xff\xff" + "\x10\x00\x06\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff")

// TestAccessIsNarrowedWhereItCannotBeKept has the calls fail that keep it.
func TestAccessIsNarrowedWhereItCannotBeKept(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails []fault.DiskFault
		list  bool // the old file has one
		mode  uint32
		group uint32
	}{
		{name: "nothing fails", mode: 0o6664, group: 88},
		{name: "nothing fails, with a list", list: true, mode: 0o660, group: 88},
		{name: "the owner can't be kept", fails: []fault.DiskFault{{Op: fault.DiskChown, Err: syscall.EPERM, Times: 1}}, mode: 0o2664, group: 88},
		{name: "neither owner nor group", fails: []fault.DiskFault{{Op: fault.DiskChown, Err: syscall.EPERM}}, mode: 0o644, group: 1000},
		{name: "the list can't be read", list: true, fails: []fault.DiskFault{{Op: fault.DiskAttribute, Err: syscall.EIO, Times: 1}}, mode: 0o600, group: 88},
		{name: "the list can't be set", list: true, fails: []fault.DiskFault{{Op: fault.DiskAttribute, First: 2, Err: syscall.EIO, Times: 1}}, mode: 0o600, group: 88},
		{name: "what list the new file has can't be read", fails: []fault.DiskFault{{Op: fault.DiskAttribute, First: 2, Err: syscall.EIO, Times: 1}}, mode: 0o6604, group: 88},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, l := newMemory(t), ledger{}
				f := opened(t, d, Options{OnError: func(e *Error) { t.Error(e) }})
				l.put(t, f, 1)
				synctest.Wait()
				dir := logDirectory(t, d)
				fd, err := d.OpenFile(dir, "app.log\x00", os.O_WRONLY, 0)
				err = errors.Join(err, d.Chown(fd, 77, 88), d.Chmod(fd, 0o6664)) // setuid and setgid
				if c.list {
					err = errors.Join(err, d.Chmod(fd, 0o660), d.SetAttribute(fd, permission.AccessList, aList))
				}
				if err = errors.Join(err, d.Close(fd)); err != nil {
					t.Fatal(err)
				}
				for _, x := range c.fails {
					d.Add(x)
				}
				widest := uint32(0) // before the new file has its group
				d.Watch(func(call fault.DiskCall) {
					if call.Op == fault.DiskStatPath {
						return
					}
					if is, err := d.StatPath("/log/app.log\x00"); err == nil && is.GID != 88 && is.Size == 0 {
						widest |= is.Mode & 0o777
					}
				})
				if err := f.Rotate(); err != nil {
					t.Fatal(err)
				}
				d.Watch(nil)
				is, err := d.StatPath("/log/app.log\x00")
				if err != nil || is.Mode&0o7777 != c.mode || is.GID != c.group {
					t.Errorf("the new file has the mode %o and the group %d, %v; want %o and %d", is.Mode&0o7777, is.GID, err, c.mode, c.group)
				}
				if widest&^(0o600|c.mode) != 0 || c.group == 88 && widest != 0o600 {
					t.Errorf("before it had its group it had the mode %o", widest)
				}
				list, err := d.AttributeIn(dir, "app.log\x00", permission.AccessList)
				if want := c.list && !strings.Contains(c.name, "can't"); bytes.Equal(list, aList) != want {
					t.Errorf("it has the list %q, %v; want one: %v", list, err, want)
				}
				if err := d.Close(dir); err != nil {
					t.Error(err)
				}
				l.closed(t, d, f)
			})
		})
	}
}
