package sys

// Residency counts a file's pages in the page cache.
type Residency struct {
	Pages    int64  // all pages of the file; the last one may be partial
	Resident int64  // pages in the page cache
	Source   string // the call that reported it: "cachestat(2)" or "mincore(2)"
}
