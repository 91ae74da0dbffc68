package probe

// An Access is the way in which a file will be read. The kernel chooses its read-ahead by it
// (posix_fadvise(2)).
type Access int

const (
	Normal     Access = iota // the device's own read-ahead
	Sequential               // on Linux twice the normal one
	Random                   // not at all
)
