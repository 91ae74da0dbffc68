package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/wal"
)

// walLog opens a log again and again, fills segments, and truncates both ends. Nobody else may
// read its files. The versions of each target are records of the one log.
func walLog() *crash.Workload {
	const targets = 4
	return &crash.Workload{Name: "wal", About: "wal.Log, reopened after every 8 records", Files: true, Also: closeAlone,
		Targets: func(holdfast.Policy) (all []crash.Target) {
			for id := range uint32(targets) {
				all = append(all, crash.Target{ID: id, Path: fmt.Sprintf("log/%d", id), Object: true, Whole: true, Synced: true})
			}
			return all
		},
		// The last versions that are whole, and behind older ones. None is there where no log was opened.
		Survey: func(dir string) (*crash.Survivors, error) {
			s := crash.NewSurvivors(targets)
			entries, err := os.ReadDir(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return s, nil
			} else if err != nil {
				return s, err
			}
			for _, e := range entries {
				if name := e.Name(); name != "lock" && name != "spare" && !strings.HasSuffix(name, ".wal") {
					s.Temporaries++
				}
			}
			if _, err := os.Lstat(filepath.Join(dir, "lock")); errors.Is(err, fs.ErrNotExist) {
				return s, nil
			}
			_, err = wal.Scan(dir, func(r wal.Record, damage *wal.DamageError) bool {
				record, ok := crash.ReadRecord(r.Data)
				switch {
				case damage != nil || !ok || record.Size != len(r.Data) || record.ID > targets:
					s.Half[0] = true
				case record.ID == targets: // only a crash, or a call that fails, may leave it: see useLog
					s.Temporaries++
				case record.N <= s.N[record.ID]:
					s.Disorder[record.ID] = true
				default:
					s.N[record.ID] = record.N
				}
				return true
			})
			return s, err
		},
		Run: func(r *crash.Run) error {
			for made := 0; r.More(made); {
				var err error
				if made, err = useLog(r, made, targets); err != nil {
					return err
				}
			}
			return nil
		}}
}

// closeAlone is a policy under which nothing is synced before Close.
var closeAlone = []holdfast.Policy{holdfast.Periodic(time.Second)}

// useLog opens the log, and appends to it.
func useLog(r *crash.Run, made, targets int) (_ int, err error) {
	random := r.Random(uint32(made))
	size := []holdfast.Size{8, 8, 8, 8, 8, 8, 64, 128}[random.IntN(8)] * holdfast.KiB // the head stays as it is, and the next ones have it
	l, _, err := wal.Open(r.Path("log"), wal.Options{Policy: r.Policy, SegmentSize: size, Perm: 0o600})
	if err != nil {
		return made, err
	}
	closed, waits := func() {}, random.IntN(3) > 0 || r.Policy.Sync.Mode == holdfast.SyncNever
	defer func() {
		if err = errors.Join(err, l.Close()); err == nil {
			closed()
		}
	}()
	for range 4 { // twice as many records; the second may be in the next segment, and Wait is for both
		begun, last := made, uint64(0)
		number := func(i int) (id uint32, n uint64) { return uint32(i % targets), uint64(r.Number+1)<<32 | uint64(i+1) }
		for ; made < begun+2; made++ {
			id, n := number(made)
			r.Note(crash.Begun, id, n)
			if last, err = l.Append(crash.Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 1000}.Append(nil)); err != nil {
				return made, err
			}
		}
		durable := func() {
			for i := begun; i < made; i++ {
				id, n := number(i)
				r.Note(crash.Accepted, id, n)
				r.Note(crash.Durable, id, n)
			}
		}
		if !waits { // then Close acknowledges them
			before := closed
			closed = func() { before(); durable() }
			continue
		}
		if err := l.Wait(context.Background(), last); err != nil {
			return made, err
		}
		durable()
	}
	if !waits {
		return made, nil
	}
	// Records that no target has are removed again: the next Open must not find them.
	last, err := l.Append(crash.Record{ID: uint32(targets)}.Append(nil))
	if err == nil {
		err = l.TruncateAfter(last - 1)
	}
	if last > uint64(2*targets) && err == nil {
		err = l.TruncateBefore(last - uint64(2*targets))
	}
	return made, err
}
