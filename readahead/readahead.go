package readahead

// Mode says who reads the next block of a [Reader]: the caller or a goroutine.
type Mode int

const (
	// Regular reads in the calling goroutine, and the kernel reads ahead. If copying and the
	// caller's own work both take long by measurement, a goroutine starts to read in the
	// background. It is started for a regular file only, because its Reads end by themselves.
	Regular Mode = iota

	// Always reads in a goroutine from the second block on, for any source: for example one that
	// computes, such as a decompressor. The goroutine reads up to two blocks ahead of the caller.
	// Close waits for its last Read.
	Always

	// Never reads each block in the call that needs it.
	Never
)
