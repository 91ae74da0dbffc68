package durable

// A durable step of a batch is made when so many files, or bytes, have come together.
const (
	MostPerStep      = 4096
	MostBytesPerStep = 256 << 20
)

// Whether to sync a file system as a whole. That takes along what other programs
// have left to be written there; a file that is synced by itself costs more. It is
// known what waits to be written, and how many files of the batch there were. It is
// guessed that there will be as many again.
const (
	FreeDirty    = 4 << 20  // so many bytes are written while few files are synced
	dirtyPerFile = 48 << 10 // what 1 GB/s writes in the time by which one file is cheaper: 48 µs
	decideEvery  = 32       // files, as long as they are synced by themselves
	FewDirs      = 4        // are synced one by one after renames, at one commit each
)

// WorthSyncAll reports whether to sync the file system as a whole from here on.
func WorthSyncAll(files int, dirty int64) bool {
	return dirty <= FreeDirty+int64(files)*dirtyPerFile
}

// A Device is a file system of a Step.
type Device struct {
	ID uint64
	// Allowed says that it may be synced as a whole: that can be relied on, and it has a
	// journal. Without one, files that are synced by themselves lose fewer names to a crash.
	Allowed, NoJournal bool
	Known              bool // the two above are

	// Guarded by Step.mu; what Run alone writes it reads without.
	files    int  // of the batch
	decideAt int  // when there are so many of them it is decided again whether to sync all
	together bool // files are synced with all, of this part
	failed   bool // a sync of all has: none is made any more
	errseq   int  // a directory there, open before the first byte that it is to sync; -1: none

	// Of a Run:
	worth  bool  // a sync of all was worth it for the files, or there were none
	synced bool  // it was synced as a whole
	err    error // of that
	names  int   // how many directories have new names
}
