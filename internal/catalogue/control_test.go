//go:build go1.25

package catalogue

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/crash"
)

// together is a System whose directory is synced only by three at once.
type together struct {
	crash.System
	syncs chan bool
}

func (together) WriteFile(string, []byte, bool) error { return nil }

func (together) Rename(string, string) error { return nil }

func (s together) SyncDir() error {
	s.syncs <- true
	return nil
}

// TestAControlSyncsInSeveralGoroutinesAtOnce: a file system that keeps what one process syncs may lose what several do.
// Only a power cut shows it.
func TestAControlSyncsInSeveralGoroutinesAtOnce(t *testing.T) {
	for _, level := range crash.Levels {
		got := slices.ContainsFunc(crash.Options{Workloads: With()}.Cells(level), func(c crash.Cell) bool { return c.Workload.Name == "plain-each" })
		if got != (level == crash.PowerCut) {
			t.Errorf("level %s has it: %v", level, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		on := together{syncs: make(chan bool)}
		files, ended := map[uint32]bool{}, make(chan error)
		var mu sync.Mutex
		r := crash.Run{System: on, Records: 24, Tell: func(n crash.Note) {
			mu.Lock()
			defer mu.Unlock()
			files[n.ID] = true
		}}
		go func() { ended <- Find("plain-each").Run(&r) }()
		for range 24 / 3 {
			synctest.Wait()
			for range 3 {
				select {
				case <-on.syncs:
				default:
					t.Error("fewer than three goroutines sync at once")
					<-on.syncs
				}
			}
		}
		if err := <-ended; err != nil || len(files) != 24 {
			t.Errorf("%d files, %v", len(files), err)
		}
	})
}
