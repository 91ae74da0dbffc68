package readahead

// Mode says what reads the next block of a [Reader].
type Mode int

const (
	// Regular lets the kernel read ahead, and the caller copy. Where both the copying
	// and the caller's own work are measured to take long, a goroutine copies in the
	// background. It is started for a regular file only, because its Reads end by
	// themselves.
	Regular Mode = iota

	// Always lets a goroutine read from the second block on, whatever the source is:
	// for one that computes, such as a decompressor. The goroutine reads up to two
	// blocks more than the caller has consumed. Close waits for its last Read.
	Always

	// Never has each block read by the call that needs it.
	Never
)
