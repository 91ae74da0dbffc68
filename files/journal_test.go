//go:build go1.25

package files_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
)

// onDiskWithoutJournal returns a disk on which files are not to be synced together.
func onDiskWithoutJournal() *fault.Disk {
	disk := fault.NewDisk()
	disk.SetDirty(0)
	disk.SetLacksJournal("/", true)
	return disk
}

// eachSynced checks that each of these files was synced by a call of its own before its
// name. Nothing may be synced with the whole file system.
func eachSynced(t *testing.T, disk *fault.Disk, n int) {
	t.Helper()
	if disk.Count(fault.DiskSyncAll) > 0 {
		t.Error("the file system was synced as a whole")
	}
	synced := map[int]bool{}
	for _, c := range disk.Calls() {
		if c.Op == fault.DiskSync && c.Path != "/" || c.Op == fault.DiskDatasync {
			synced[c.FD] = true
		}
	}
	if len(synced) != n {
		t.Errorf("%d files were synced by themselves, want %d", len(synced), n)
	}
}

// TestFilesWithoutAJournalAreSyncedEachByItself tests batches and streams;
// TestCopiesWithoutAJournalAreSyncedEachByItself tests filecopy.All.
func TestFilesWithoutAJournalAreSyncedEachByItself(t *testing.T) {
	const n = 40
	for _, mode := range []files.Mode{files.Create, files.Truncate, files.Append, files.Replace} {
		t.Run(mode.String(), func(t *testing.T) {
			disk := onDiskWithoutJournal()
			f := onDisk(t, disk, files.Options{Policy: holdfast.Durable()})
			results, err := f.WriteAll(noContext, func(yield func(files.Write) bool) {
				for i := range n {
					if !yield(files.Write{Path: fmt.Sprint("/", i), Data: []byte("x"), Mode: mode}) {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			eachSynced(t, disk, n)
			if totals := results.Totals(); totals.NoJournal != n || totals.Durable != n || !results.At(0).NoJournal {
				t.Errorf("the doubt is reported of %d files of %d durable ones", totals.NoJournal, totals.Durable)
			}
			text, err := json.Marshal(results.At(0))
			if err != nil || !strings.Contains(string(text), `"no_journal":true`) {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
	t.Run("streams", func(t *testing.T) {
		disk := onDiskWithoutJournal()
		f := onDisk(t, disk, files.Options{Policy: holdfast.Policy{Buffer: 64, Sync: holdfast.Sync{Mode: holdfast.SyncClose}}})
		for i := range n {
			mustAppend(t, f, fmt.Sprint("/", i), "x")
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		eachSynced(t, disk, n)
		if f.Stats().NoJournal == 0 {
			t.Error("the doubt of files that are appended to is not reported")
		}
	})
}

// TestDoubtIsReportedOfWhatSyncAloneMakesDurable has a policy that never syncs.
func TestDoubtIsReportedOfWhatSyncAloneMakesDurable(t *testing.T) {
	for _, lacks := range []bool{false, true} {
		for _, closed := range []bool{false, true} {
			disk := fault.NewDisk()
			disk.SetLacksJournal("/", lacks)
			f := onDisk(t, disk, files.Options{Policy: holdfast.Unbuffered()})
			mustAppend(t, f, "/a", "x")
			if closed {
				if err := f.Release(noContext, "/a"); err != nil {
					t.Fatal(err)
				}
			}
			if f.Stats().NoJournal > 0 {
				t.Error("the doubt is reported of what is not durable")
			}
			if err := f.Sync(noContext); err != nil {
				t.Fatal(err)
			}
			if is := f.Stats().NoJournal > 0; is != lacks {
				t.Errorf("without a journal %v, closed before %v: the doubt is reported: %v", lacks, closed, is)
			}
		}
	}
}

// TestNoDoubtIsReportedOfOtherFiles has a journal, or files that are not durable.
func TestNoDoubtIsReportedOfOtherFiles(t *testing.T) {
	for _, lacks := range []bool{false, true} {
		for _, p := range []holdfast.Policy{holdfast.Unbuffered(), holdfast.Durable(), holdfast.EachDurable()} {
			disk := fault.NewDisk()
			disk.SetLacksJournal("/", lacks)
			f := onDisk(t, disk, files.Options{Policy: p})
			r, err := f.WriteFile(noContext, "/a", []byte("x"), files.Replace)
			if err != nil {
				t.Fatal(err)
			}
			if want := lacks && p.Sync.Mode != holdfast.SyncNever; r.NoJournal != want {
				t.Errorf("without a journal %v, %v: NoJournal is %v", lacks, p, r.NoJournal)
			}
			for range 2 { // the second promise is of the same file, opened anew
				before := f.Stats().NoJournal
				if err := f.Append(noContext, "/log", []byte("x")); err != nil {
					t.Fatal(err)
				}
				if err := f.Release(noContext, "/log"); err != nil {
					t.Fatal(err)
				}
				if is := f.Stats().NoJournal > before; is != (lacks && p.Sync.Mode != holdfast.SyncNever) {
					t.Errorf("without a journal %v, %v: of what was appended the doubt is reported: %v", lacks, p, is)
				}
			}
			if text, _ := json.Marshal(r); strings.Contains(string(text), "no_journal") != r.NoJournal {
				t.Errorf("%s", text)
			}
		}
	}
}
