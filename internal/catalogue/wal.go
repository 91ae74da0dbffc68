//go:build go1.25

package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/crash/fault"
	"github.com/holdfast-go/holdfast/internal/sys"
	"github.com/holdfast-go/holdfast/internal/vfs"
	"github.com/holdfast-go/holdfast/wal"
)

// walTargets is how many targets the records of a log are of.
const walTargets = 4

// walLog opens a log again and again, fills segments, and truncates both ends. Nobody else may
// read its files. The versions of each target are records of the one log.
func walLog() *crash.Workload {
	return &crash.Workload{Name: "wal", About: "wal.Log, reopened after every few records", Also: closeAlone, Periods: periods,
		Targets: func(holdfast.Policy) (all []crash.Target) {
			for id := range uint32(walTargets) {
				all = append(all, crash.Target{ID: id, Path: fmt.Sprintf("log/%d", id), Object: true, Whole: true, Synced: true})
			}
			return all
		},
		Survey: func(dir string) (*crash.Survivors, error) {
			entries, err := os.ReadDir(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return crash.NewSurvivors(walTargets), nil
			} else if err != nil {
				return nil, err
			}
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			return surveyLog(names, func(each scanned) (wal.Recovery, error) { return wal.Scan(dir, each) })
		},
		Scan: func(t crash.Tree) (*crash.Survivors, error) {
			d := fault.NewDisk()
			if err := d.MkdirAll("/log"); err != nil {
				return nil, err
			}
			var names []string
			for name, data := range t.Files {
				if err := d.WriteFile("/"+name, data, 0o600); err != nil {
					return nil, err
				}
				names = append(names, path.Base(name))
			}
			var why error
			s, err := surveyLog(names, func(each scanned) (wal.Recovery, error) {
				return vfs.ScanLog.(func(vfs.ReadDisk, string, func(wal.Record, *wal.DamageError) bool) (wal.Recovery, error))(readDisk{d}, "/log", func(r wal.Record, damage *wal.DamageError) bool {
					if damage != nil && why == nil {
						why = damage
					}
					return each(r, damage)
				})
			})
			return s, cmp.Or(err, why)
		},
		Run: func(r *crash.Run) error {
			const most = 3 // failures, behind each of which the log is opened again
			var failed []error
			for made := 0; r.More(3*made) && len(failed) < most; { // in memory each state is scanned
				var err error
				if made, err = useLog(r, made, walTargets); err != nil {
					failed = append(failed, err)
				}
			}
			return errors.Join(failed...)
		}}
}

// scanned is called with each record of a log.
type scanned = func(wal.Record, *wal.DamageError) bool

// surveyLog says what is in a log whose directory has these names: the last versions that are whole, and behind older ones.
func surveyLog(names []string, scan func(scanned) (wal.Recovery, error)) (*crash.Survivors, error) {
	s := crash.NewSurvivors(walTargets)
	for _, name := range names {
		if name != "lock" && name != "spare" && !strings.HasSuffix(name, ".wal") {
			s.Temporaries++
		}
	}
	if !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".wal") }) {
		return s, nil
	}
	found, err := scan(func(r wal.Record, damage *wal.DamageError) bool {
		record, ok := crash.ReadRecord(r.Data)
		switch {
		case damage != nil || !ok || record.Size != len(r.Data) || record.ID > walTargets:
			s.Half[0] = true
		case record.ID == walTargets: // only a crash, or a call that fails, may leave it: see useLog
			s.Temporaries++
		case record.N <= s.N[record.ID]:
			s.Disorder[record.ID] = true
		default:
			s.N[record.ID] = record.N
		}
		return true
	})
	if found.Torn > 0 { // a next run may stumble over it
		s.TornTails, s.TornBytes = 1, found.Torn
	}
	return s, err
}

// readDisk is a disk in memory that a log may be read from.
type readDisk struct{ *fault.Disk }

func (d readDisk) OpenSource(dir int, name sys.Name) (int, error) {
	return d.OpenFile(dir, name, os.O_RDONLY, 0)
}
func (readDisk) StatFile(int) (sys.FileStat, error) { return sys.FileStat{}, errors.ErrUnsupported }
func (readDisk) StatDir(int) (sys.DirStat, error)   { return sys.DirStat{}, errors.ErrUnsupported }

// closeAlone is a policy under which nothing is synced before Close.
var closeAlone = []holdfast.Policy{holdfast.Periodic(time.Second)}

// useLog opens the log, and appends to it.
func useLog(r *crash.Run, made, targets int) (_ int, err error) {
	random := r.Random(uint32(made))
	size := []holdfast.Size{8, 8, 8, 8, 8, 8, 64, 128}[random.IntN(8)] * holdfast.KiB // the head stays as it is, and the next ones have it
	o := wal.Options{Policy: r.Policy, SegmentSize: size, Perm: 0o600}
	var l *wal.Log
	var found wal.Recovery
	if d := r.Disk(); d != nil {
		l, found, err = vfs.OpenLog.(func(vfs.ReadDisk, string, wal.Options) (*wal.Log, wal.Recovery, error))(d, r.Path("log"), o)
	} else {
		l, found, err = wal.Open(r.Path("log"), o)
	}
	if err != nil {
		return made, err
	}
	closed, waits := func() {}, random.IntN(3) > 0 || r.Policy.Sync.Mode == holdfast.SyncNever
	defer func() {
		if err = errors.Join(err, l.Close()); err == nil {
			closed()
		}
	}()
	newest := make([]uint64, targets)            // indices
	for x, err := range l.Records(found.First) { // Open has made them durable
		if err != nil {
			return made, err
		}
		if record, ok := crash.ReadRecord(x.Data); ok && record.ID < uint32(targets) {
			r.Note(crash.Durable, record.ID, record.N)
			newest[record.ID] = x.Index
		}
	}
	number := func(i int) (id uint32, n uint64) { return uint32(i % targets), uint64(r.Number+1)<<32 | uint64(i+1) }
	put := func(i int) (index uint64, err error) {
		id, n := number(i)
		r.Note(crash.Begun, id, n)
		return l.Append(crash.Record{ID: id, N: n, At: time.Now().UnixNano(), Size: 1000}.Append(nil))
	}
	if random.IntN(3) == 0 {
		// A goroutine for each target, and two that truncate.
		errs := make([]error, targets+2)
		var group sync.WaitGroup
		for i := targets; i < len(errs); i++ {
			late := random.IntN(30) // so that one comes while the other writes, or syncs
			group.Go(func() {
				for range late {
					runtime.Gosched()
				}
				errs[i] = l.TruncateBefore(slices.Min(newest))
			})
		}
		for first := range targets {
			group.Go(func() {
				for i := made + first; i < made+2*targets && errs[first] == nil; i += targets {
					index, err := put(i)
					if err == nil {
						err = l.Wait(context.Background(), index)
					}
					if errs[first] = err; err == nil {
						id, n := number(i)
						r.Note(crash.Accepted, id, n)
						r.Note(crash.Durable, id, n)
					}
				}
			})
		}
		group.Wait()
		return made + 2*targets, errors.Join(errs...)
	}
	for range 4 { // one record may be durable alone, in front of what a crash has left; of some the last may be in the next segment, and Wait is for all
		begun, last, some := made, uint64(0), 1+random.IntN(3)
		if r.Number > 0 && random.IntN(2) == 0 { // then each new frame may end where one begins that the crash has left
			some = 1
		}
		for ; made < begun+some; made++ {
			if last, err = put(made); err != nil {
				return made + 1, err // Close may have written it
			}
		}
		durable := func() {
			for i := begun; i < made; i++ {
				id, n := number(i)
				r.Note(crash.Accepted, id, n)
				r.Note(crash.Durable, id, n)
			}
		}
		if r.Pause != nil {
			r.Pause(random)
		}
		if due := r.Policy.Due().Sync; !waits && r.Fake && due > 0 && random.IntN(2) == 0 { // the clock acknowledges them
			if time.Sleep(due * 5 / 4); l.Err() == nil {
				durable()
			}
			continue
		}
		if !waits { // then Close acknowledges them
			before := closed
			closed = func() { before(); durable() }
			continue
		}
		if err := l.Wait(context.Background(), last); err != nil {
			// Some programs go on behind a failed Wait. Where a later record is said to be durable, all records in front of it must be.
			if last, again := put(made); again == nil && l.Wait(context.Background(), last) == nil {
				id, n := number(made)
				r.Note(crash.Accepted, id, n)
				r.Note(crash.Durable, id, n)
			}
			return made + 1, err
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
	if last > uint64(2*targets) && err == nil && random.IntN(4) == 0 { // seldom: then several segments go at once
		err = l.TruncateBefore(last - uint64(2*targets))
	}
	return made, err
}
