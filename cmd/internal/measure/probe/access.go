package probe

// An Access is how a file is going to be read. By it the kernel decides how far
// it reads ahead (posix_fadvise(2)).
type Access int

const (
	Normal     Access = iota // as far as the device's setting says
	Sequential               // on Linux twice as far
	Random                   // not at all
)
