package durable

import (
	"iter"
	"sync"

	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Step makes the files of a batch durable together, and can be used again. First it makes their
// bytes durable: of a file that was not synced by itself, by a sync of its whole file system. Then
// the files that wait for that get their names. Then the names become durable: it syncs each
// directory, or, for many directories, their file system.
//
// A sync counts for a name only if the name existed before the sync began, and if no sync has
// failed since then that may have lost the name (see NameSyncs).
//
// SyncOpen makes files durable that are still open.
//
// Any goroutine may call the methods, but only one at a time Run.
type Step struct {
	Disk    vfs.Disk
	Names   *NameSyncs
	SyncAll func(errseq int) error // syncs the file system of an errseq descriptor
	Ended   func() error           // the error that stops further syncs of directories; nil: never
	Most    int                    // the most directories synced at once

	mu      sync.Mutex
	devices []*Device
	places  []*Place // places with names for the next Run, each once
	run     []*Place // reused by Run
}

// A Place is a directory in which files of a batch get names.
type Place struct {
	Key    keyed.Key // its device and inode
	Device *Device
	Since  int          // Names.Now() or Names.Losses(Key) before it got names
	Sync   func() error // syncs it in its turn (see NameSyncs.Directory); may open it first
	Rest   func()       // called when Run no longer needs it; or nil

	listed bool  // in Step.places; guarded by Step.mu
	taken  bool  // Run has it
	err    error // the first error by which its names may not be durable; guarded by Step.mu
	ended  bool  // err is the error of Ended
}

// A File is a written and closed file that is not durable yet.
type File struct {
	Place   *Place
	Whole   *Device // the device whose sync covers its bytes; nil: they were synced by themselves
	Renames bool    // it gets its name when its bytes are durable
	Err     error   // the error by which it may not be durable
	Ended   bool    // its name was not synced, because of Step.Ended
}

// Device returns the device with the number id.
func (s *Step) Device(id uint64) *Device {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.devices {
		if x.ID == id {
			return x
		}
	}
	x := &Device{Errseq: Errseq{ID: id, Fd: -1}}
	s.devices = append(s.devices, x)
	return x
}

// Takes adds a file, and reports whether the device's sync covers it. Call it before the file's
// first byte is written. open opens an errseq descriptor on the device, to which the kernel reports
// later failures, or returns -1.
func (s *Step) Takes(x *Device, open func() (fd int)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.together && x.files >= x.decideAt {
		x.decideAt = x.files + decideEvery
		if x.Allowed && worthSyncAll(s.Disk, x.files) {
			if x.Fd < 0 {
				x.Fd = open()
			}
			x.together = x.Works()
		}
	}
	x.files++
	return x.together
}

// Watch returns the errseq descriptor of a device that allows syncfs, for SyncOpen, or nil. It opens it, as
// Takes does. Whether many directories are synced by it is decided then.
func (s *Step) Watch(x *Device, open func() (fd int)) *Errseq {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.watched = true; x.Allowed && x.Fd < 0 {
		x.Fd = open()
	}
	if !x.Works() {
		return nil
	}
	return &x.Errseq
}

// Named records that a place has a new name, which the next Run makes durable.
func (s *Step) Named(at *Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.listed {
		at.listed = true
		s.places = append(s.places, at)
	}
}

// Waits reports whether the next Run makes names of a place durable.
func (s *Step) Waits(at *Place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.listed
}

// Idle reports whether the next Run would have no place to sync.
func (s *Step) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.places) == 0
}

// Loss returns the error by which names of a place may not be durable after a sync of it, or nil.
func (s *Step) Loss(at *Place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.err
}

// Run makes files durable, and all names that Named has recorded. Then each file's Err is nil if it
// is durable. Run calls rename when all files with a nil Err have durable bytes: it gives the
// waiting files their names, calls Named, and sets Err on a failure. It may add files without bytes
// of their own.
func (s *Step) Run(files iter.Seq[*File], rename func()) {
	s.settle()
	places := s.take(s.run[:0])
	for f := range files {
		if f.Whole != nil {
			f.Err = s.syncWhole(f.Whole)
		}
	}
	places = s.settleWhole(places)
	for f := range files {
		if f.Whole != nil && !f.Renames && f.Err == nil {
			f.Err = f.Place.err
		}
	}
	rename()
	places = s.take(places)
	s.syncNames(places)
	for f := range files {
		if f.Err == nil && (f.Whole == nil || f.Renames) {
			f.Err, f.Ended = f.Place.err, f.Place.ended
		}
	}
	clear(places)
	s.run = places[:0]
}

// settle begins a new part, for which the decision between syncfs and single syncs is made again.
func (s *Step) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.devices {
		x.worth = x.Fd >= 0 && (x.together || x.decideAt == 0)
		x.together, x.decideAt, x.synced = false, 0, false
	}
}

// take adds the places with new names to places.
func (s *Step) take(places []*Place) []*Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, at := range s.places {
		s.places[i], at.listed = nil, false
		if !at.taken {
			at.taken = true
			places = append(places, at)
		}
	}
	s.places = s.places[:0]
	return places
}

// syncWhole syncs a whole device, once.
func (s *Step) syncWhole(x *Device) error {
	if x.synced {
		return x.err
	}
	x.synced, x.err = true, s.Names.Whole(x.ID, func() error { return x.sync(s.SyncAll) })
	return x.err
}

// settleWhole settles the places on devices that were synced since the places got their names, and
// returns the others. A sync of a directory that fails meanwhile, or failed before, has lost names
// for good.
func (s *Step) settleWhole(places []*Place) (others []*Place) {
	others = places[:0]
	for _, at := range places {
		if !at.Device.synced {
			others = append(others, at)
			continue
		}
		err := at.Device.err
		if err == nil {
			err = s.Names.Settled(at.Key, at.Since)
		}
		s.done(at, err)
	}
	return others
}

// syncNames makes the names in places durable: many on one device by one more sync of the whole
// device.
func (s *Step) syncNames(places []*Place) {
	for _, at := range places {
		at.Device.synced, at.Device.names = false, 0
	}
	for _, at := range places {
		at.Device.names++
	}
	for _, at := range places {
		if x := at.Device; x.names > FewDirs && x.worth && x.Works() && s.ended() == nil &&
			(!x.watched || x.synced || worthSyncAll(s.Disk, x.names)) {
			s.syncWhole(x)
		}
	}
	rest := s.settleWhole(places)
	if len(rest) > 0 { // without any, Abreast would allocate for nothing
		Abreast(s.Most, len(rest), func(i int) {
			at, err := rest[i], s.ended()
			if at.ended = err != nil; !at.ended {
				err = s.SyncDir(at)
			}
			s.done(at, err)
		})
	}
}

func (s *Step) ended() error {
	if s.Ended == nil {
		return nil
	}
	return s.Ended()
}

// SyncDir makes the names in a place durable by a sync of its directory. It returns the first error
// by which some may not be.
func (s *Step) SyncDir(at *Place) error {
	err := at.Sync()
	if err == nil {
		err = s.Names.LostSince(at.Key, at.Since)
	}
	return s.note(at, err)
}

// note records an error by which names of a place may not be durable, and returns the first one: no
// later sync repairs it.
func (s *Step) note(at *Place, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.err == nil {
		at.err = err
	}
	return at.err
}

// done ends a Run's work on a place.
func (s *Step) done(at *Place, err error) {
	s.note(at, err)
	at.taken = false
	if at.Rest != nil {
		at.Rest()
	}
}

// Abandon begins a new part without syncing the recorded places.
func (s *Step) Abandon() {
	s.settle()
	s.run = s.take(s.run[:0])
	for _, at := range s.run {
		s.done(at, nil)
	}
	clear(s.run)
}

// Close closes the errseq descriptors by close. After it the Step is as new.
func (s *Step) Close(close func(errseq int)) {
	s.Abandon()
	for _, x := range s.devices {
		if x.Fd >= 0 {
			close(x.Fd)
		}
	}
	s.devices = nil
}

// An OpenFile is a written file that stays open until it is durable.
type OpenFile struct {
	Errseq *Errseq   // open before the file's first byte; nil: none
	Dir    keyed.Key // the directory of its name
	Since  int       // Names.Losses(Dir) before it got its name
	Err    error     // the error by which its bytes may not be durable
	Named  bool      // its name became durable with them
}

// SyncOpen makes the bytes of n open files durable. It syncs the files of e by syncfs, if that is
// worth it, and each other file by alone. If syncfs fails, all are synced by alone: their own
// descriptors have reported nothing yet. Any goroutine may call it at any time.
//
// That failure counts for no names. Most often a file lost bytes, and the sync of that file reports
// it. If names were lost, the file system has stopped, and every sync reports it.
func (s *Step) SyncOpen(e *Errseq, n int, file func(i int) *OpenFile, alone func(i int) error) {
	watched := 0
	for i := range n {
		if e != nil && file(i).Errseq == e {
			watched++
		}
	}
	all := watched > FewOpenFiles && worthSyncAll(s.Disk, watched) &&
		s.Names.InTurn(keyed.Key{Device: e.ID}, func() error { return e.sync(s.SyncAll) }) == nil
	Abreast(s.Most, n, func(i int) {
		if f := file(i); all && f.Errseq == e {
			f.Named = s.Names.Settled(f.Dir, f.Since) == nil
		} else {
			f.Err = alone(i)
		}
	})
}
