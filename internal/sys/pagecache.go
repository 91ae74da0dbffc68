package sys

// Residency says how much of a file is in the page cache.
type Residency struct {
	Pages    int64  // all pages of the file, the last one perhaps in part
	Resident int64  // those in the page cache
	Source   string // the call that reported it: "cachestat(2)" or "mincore(2)"
}
