//go:build !race

package holdfast

import "sync/atomic"

// stackRegion tells goroutines apart: stacks are multiples of 2 KiB and aligned to
// that (Go's runtime/stack.go), so no two that live at once share a region. A
// goroutine may be seen in several, by its depth or when its stack moves; it then
// counts as several. 0 means that the lock is never lent.
//
//go:noescape
func stackRegion() uintptr

// enterLoan says "inside" on the loan that stands, if it is for the goroutine that
// runs in this stack region and nobody is inside, and returns it if it still
// stands then. It is assembly because the runtime can't stop it halfway and move
// the stack: while it runs, the region is the caller's alone. Later the flag keeps
// out whoever gets the region next.
//
//go:noescape
func enterLoan(at *atomic.Pointer[loan]) *loan
