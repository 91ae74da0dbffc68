package sys

// An Access is how a file is going to be read. The kernel decides by it how far
// ahead it reads (posix_fadvise(2)).
type Access int

const (
	Normal     Access = iota // as far as the device's setting says
	Sequential               // on Linux twice as far
	Random                   // not at all
)
