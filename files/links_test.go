//go:build go1.25

package files_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// A wayIn is how the path /p/way leads to a file whose name is another's: target.
type wayIn struct {
	name    string
	target  string
	exists  bool
	mounted bool // no other file may be given its name
	lay     func(d *fault.Disk) error
}

func waysIn() []wayIn {
	link := func(_, text string) func(d *fault.Disk) error {
		return func(d *fault.Disk) error { return d.Symlink(text, "/p/way") }
	}
	bind := func(target string) func(d *fault.Disk) error {
		return func(d *fault.Disk) error { return d.Bind(target, "/p/way") }
	}
	return []wayIn{
		{"a link to a file of another directory", "/q/log", true, false, link("/q/log", "/q/log")},
		{"a link to a name of another directory", "/q/log", false, false, link("/q/log", "../q/log")},
		{"a link to a file of another file system", "/m/log", true, false, link("/m/log", "/m/log")},
		{"a link to a name of another file system", "/m/log", false, false, link("/m/log", "/m/log")},
		{"a link to a link", "/m/log", false, false, func(d *fault.Disk) error {
			d.Symlink("/m/log", "/q/between")
			return d.Symlink("../q/between", "/p/way")
		}},
		{"a file of another directory that is mounted", "/q/log", true, true, bind("/q/log")},
		{"a file of another file system that is mounted", "/m/log", true, true, bind("/m/log")},
	}
}

// lay makes the disk on which there is a way to a file.
func (w wayIn) disk(t *testing.T, syncsAll bool) *fault.Disk {
	t.Helper()
	d := fault.NewDisk()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(d.MkdirAll("/p"))
	must(d.MkdirAll("/q"))
	must(d.Mount("/m"))
	d.SetSyncsAll("/", syncsAll)
	d.SetSyncsAll("/m", syncsAll)
	if w.exists {
		must(d.WriteFile(w.target, []byte("old "), 0o644))
	}
	must(w.lay(d))
	return d
}

// linkCalls are the calls that write "new" to /p/way, by kind.
func linkCalls() map[string]func(f *files.Set) error {
	ctx := context.Background()
	calls := map[string]func(f *files.Set) error{
		"Append": func(f *files.Set) error { return f.Append(ctx, "/p/way", []byte("new")) },
		"Append and Sync": func(f *files.Set) error {
			if err := f.Append(ctx, "/p/way", []byte("new")); err != nil {
				return err
			}
			return f.Sync(ctx)
		},
	}
	for _, mode := range []files.Mode{files.Truncate, files.Append, files.Replace} {
		calls[fmt.Sprintf("Write %v", mode)] = func(f *files.Set) error {
			_, err := f.WriteFile(ctx, "/p/way", []byte("new"), mode)
			return err
		}
		calls[fmt.Sprintf("WriteAll %v", mode)] = func(f *files.Set) error {
			_, err := f.WriteAll(ctx, one(files.Write{Path: "/p/way", Data: []byte("new"), Mode: mode},
				files.Write{Path: "/p/beside", Data: []byte("x")}))
			return err
		}
	}
	return calls
}

// TestDurableThroughALinkOrAMount writes to a file by a path in another directory than
// the file's name, or on another file system than the file.
func TestDurableThroughALinkOrAMount(t *testing.T) {
	needsNoFollow(t)
	for _, way := range waysIn() {
		for what, call := range linkCalls() {
			for _, sync := range []holdfast.Sync{{Mode: holdfast.SyncClose}, {Mode: holdfast.SyncGroup}, {Mode: holdfast.SyncEach}} {
				for _, syncsAll := range []bool{true, false} {
					if what == "Append" && sync.Mode == holdfast.SyncClose {
						continue // nothing is promised yet
					}
					disk := way.disk(t, syncsAll)
					f := newSet(disk, files.Options{Policy: holdfast.Policy{Sync: sync, Buffer: holdfast.KiB}, Retry: once})
					err := call(f)
					lost := lostIn(cuts(disk), way.target, "new")
					if err == nil && lost > 0 {
						t.Errorf("%s, %s under %v, syncs all %v: durable, and lost by %d of 60 power cuts", way.name, what, sync, syncsAll, lost)
					}
					if refused := way.mounted && strings.HasSuffix(what, "replace"); (err != nil) != refused {
						t.Errorf("%s, %s under %v: %v, want an error: %v", way.name, what, sync, err, refused)
					}
					if err := f.Close(); err != nil || disk.Open() > 0 || len(disk.Violations()) > 0 {
						t.Error(way.name, what, err, disk.Open(), disk.Violations())
					}
				}
			}
		}
	}
}

// TestSyncOfAClosedFileBehindALinkOrAMount appends under sync=never to a file that is closed unsynced
// then. To sync the file system of its directory is no proof for a file that was mounted from another.
func TestSyncOfAClosedFileBehindALinkOrAMount(t *testing.T) {
	needsNoFollow(t)
	for _, way := range waysIn() {
		disk := way.disk(t, true)
		f := newSet(disk, files.Options{Policy: holdfast.Unbuffered(), Retry: once})
		mustAppend(t, f, "/p/way", "new")
		if err := f.Release(noContext, "/p/way"); err != nil {
			t.Errorf("%s: Release: %v", way.name, err)
		}
		err := f.Sync(noContext)
		if lost := lostIn(cuts(disk), way.target, "new"); err == nil && lost > 0 {
			t.Errorf("%s: durable, and lost by %d of 60 power cuts", way.name, lost)
		}
		if elsewhere := way.mounted && strings.HasPrefix(way.target, "/m/"); (err != nil && strings.Contains(err.Error(), "closed to make room before they were synced")) != elsewhere {
			t.Errorf("%s: Sync: %v, want an error: %v", way.name, err, elsewhere)
		}
		f.Close() // reports it once more
		if disk.Open() > 0 || len(disk.Violations()) > 0 {
			t.Error(way.name, disk.Open(), disk.Violations())
		}
	}
}

// needsNoFollow skips a test of links on a disk that loses a name whose directory is not synced. Without
// the flag the kernel follows a link, and the directory of the link is synced, not the file's. A system
// that lacks the flag syncs no directory either: its names are durable by a journal.
func needsNoFollow(t *testing.T) {
	t.Helper()
	if sys.NoFollow == 0 {
		t.Skip("this system opens no link itself, and syncs no directory")
	}
}

// cuts returns what some power cuts leave.
func cuts(disk *fault.Disk) (images []*fault.Image) {
	for seed := range uint64(60) {
		images = append(images, disk.PowerCut(rand.New(rand.NewPCG(seed, 1))))
	}
	return images
}

// lostIn returns how many of the images hold no file that ends in these bytes.
func lostIn(images []*fault.Image, target, want string) (lost int) {
	for _, image := range images {
		data, _ := image.File(target)
		if len(data) < len(want) || string(data[len(data)-len(want):]) != want {
			lost++
		}
	}
	return lost
}
