package durable

import (
	"iter"
	"sync"

	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/vfs"
)

// A Step makes the files of a batch durable together, again and again. First their bytes:
// where a file was not synced by itself, by a sync of its whole file system. Then
// the files that wait for that get their names. Then the names become durable: each
// directory is synced, or of many directories their file system.
//
// A sync counts for a name only if the name existed before the sync began. It does not count
// if another sync has failed since then that may have lost the name (see NameSyncs).
//
// Files that are still open are made durable by SyncOpen.
//
// Any goroutine may call its methods, but Run is called by one at a time.
type Step struct {
	Disk    vfs.Disk
	Names   *NameSyncs
	SyncAll func(errseq int) error // syncs the file system of an errseq descriptor
	Ended   func() error           // why no directory is to be synced any more; nil: never
	Most    int                    // directories that are synced at once

	mu      sync.Mutex
	devices []*Device
	places  []*Place // with names that the next Run makes durable, each once
	run     []*Place // memory of Run
}

// A Place is a directory in which files of a batch get names.
type Place struct {
	Key    keyed.Key // its device and inode
	Device *Device
	Since  int          // Names.Now() or Names.Losses(Key), before it got names
	Sync   func() error // syncs it in its turn (see NameSyncs.Directory), for which it may have to be opened
	Rest   func()       // is called when Run needs it no more; nil: nothing is to be done then

	listed bool  // in Step.places; guarded by Step.mu
	taken  bool  // by Run
	err    error // why its names may not be durable: the first cause stays; guarded by Step.mu
	ended  bool  // err is what Ended returned
}

// A File is written and closed, and waits to be durable.
type File struct {
	Place   *Place
	Whole   *Device // with all of this its bytes are synced; nil: they were synced by themselves
	Renames bool    // it gets its name when its bytes are durable
	Err     error   // why it may not be durable
	Ended   bool    // its name was not synced, as Step.Ended said
}

// Device returns the device with this number.
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

// Takes reports whether one more file is to be synced with all of a device. Call it before the
// file's first byte is written. There open opens an errseq descriptor, to which the kernel reports
// what fails from then on, or returns -1.
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

// Named notes that a place has got a name that the next Run is to make durable.
func (s *Step) Named(at *Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.listed {
		at.listed = true
		s.places = append(s.places, at)
	}
}

// Waits reports whether the next Run is to make names of a place durable.
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

// Loss returns why names of a place may not be durable though a sync of it was made.
func (s *Step) Loss(at *Place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.err
}

// Run makes files durable, with all names that Named noted before. Each file's Err says
// afterwards whether it is. rename is called when all files with a nil Err have durable bytes.
// It gives the waiting ones their names, calls Named, and sets Err where that failed. It may
// add files without bytes of their own.
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

// settle begins a new part: how its files are synced is decided again.
func (s *Step) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.devices {
		x.worth = x.Fd >= 0 && (x.together || x.decideAt == 0)
		x.together, x.decideAt, x.synced = false, 0, false
	}
}

// take adds the places that have new names to those that wait for a sync.
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

// syncWhole syncs a device as a whole, once.
func (s *Step) syncWhole(x *Device) error {
	if x.synced {
		return x.err
	}
	x.synced, x.err = true, s.Names.Whole(x.ID, func() error { return x.sync(s.SyncAll) })
	return x.err
}

// settleWhole settles the places on devices that were synced as a whole since they got their
// names, and returns the others. A sync of a directory that fails beside that, or failed
// before, has lost names for good.
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

// syncNames makes the names in places durable: in many of one device by another sync of all.
func (s *Step) syncNames(places []*Place) {
	for _, at := range places {
		at.Device.synced, at.Device.names = false, 0
	}
	for _, at := range places {
		at.Device.names++
	}
	for _, at := range places {
		if x := at.Device; x.names > FewDirs && x.worth && x.Works() && s.ended() == nil {
			s.syncWhole(x)
		}
	}
	rest := s.settleWhole(places)
	if len(rest) > 0 { // else it takes no memory
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

// SyncDir makes the names in a place durable by a sync of it. It returns the first cause why some
// may not be.
func (s *Step) SyncDir(at *Place) error {
	err := at.Sync()
	if err == nil {
		err = s.Names.LostSince(at.Key, at.Since)
	}
	return s.note(at, err)
}

// note notes why names of a place may not be durable, and returns the first cause: no later
// sync brings them back.
func (s *Step) note(at *Place, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.err == nil {
		at.err = err
	}
	return at.err
}

// done ends what Run does for a place.
func (s *Step) done(at *Place, err error) {
	s.note(at, err)
	at.taken = false
	if at.Rest != nil {
		at.Rest()
	}
}

// Abandon begins a new part, and leaves the places that were noted as they are.
func (s *Step) Abandon() {
	s.settle()
	s.run = s.take(s.run[:0])
	for _, at := range s.run {
		s.done(at, nil)
	}
	clear(s.run)
}

// Close closes the errseq descriptors by close. The step is like a new one then, but for its
// memory.
func (s *Step) Close(close func(errseq int)) {
	s.Abandon()
	for _, x := range s.devices {
		if x.Fd >= 0 {
			close(x.Fd)
		}
	}
	s.devices = nil
}

// An OpenFile is written, and is open until it is durable.
type OpenFile struct {
	Errseq *Errseq   // was open before the file's first byte; nil: none was
	Dir    keyed.Key // where its name is
	Since  int       // Names.Losses(Dir), before it got its name
	Err    error     // why its bytes may not be durable
	Named  bool      // its name became durable with them
}

// SyncOpen makes the bytes of n open files durable. It syncs those that e answers for by a sync of
// all, if that is worth it, and others by alone. If the sync of all fails, all are synced alone:
// their own descriptors have reported nothing yet. Any goroutine may call it at any time.
//
// That failure counts for no names. Most often a file lost bytes, and the sync of that file
// reports it. If names were lost, the file system has stopped, and every sync reports it.
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
