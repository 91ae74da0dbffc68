package vfs

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

var (
	_ CopyDisk = sys.Disk{}

	_ Disk        = (*fault.Disk)(nil)
	_ FileSystems = (*fault.Disk)(nil)
	_ Attributes  = (*fault.Disk)(nil)
)

// A plainDisk has no call that only some systems have.
type plainDisk struct{ Disk }

func TestADiskWithoutOptionalCallsSaysSo(t *testing.T) {
	d := plainDisk{fault.NewDisk()}
	if SyncsAll(d, 0) || LacksJournal(d, 0) || !errors.Is(SyncAll(d, 0), errors.ErrUnsupported) {
		t.Error("it syncs file systems as a whole")
	}
	if n, ok := Dirty(d); n != 0 || ok {
		t.Error("it knows what is dirty:", n)
	}
	a := AttributesOf(d)
	_, listed := a.Attributes(0)
	_, listedIn := a.AttributesIn(0, "")
	_, got := a.Attribute(0, "")
	_, gotIn := a.AttributeIn(0, "", "")
	for _, err := range []error{listed, listedIn, got, gotIn, a.SetAttribute(0, "", nil), a.RemoveAttribute(0, "")} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Error("attributes:", err)
		}
	}
}

func TestADiskWithOptionalCallsIsAsked(t *testing.T) {
	d := fault.NewDisk()
	fd, err := d.OpenDir("/\x00")
	if err != nil {
		t.Fatal(err)
	}
	if !SyncsAll(d, fd) || SyncAll(d, fd) != nil {
		t.Error("it does not sync file systems as a whole")
	}
	if _, ok := Dirty(d); !ok {
		t.Error("it does not know what is dirty")
	}
	if AttributesOf(d) != Attributes(d) {
		t.Error("its attributes are not its own")
	}
}
