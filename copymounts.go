package holdfast

import (
	"errors"
	"sync"
)

var (
	errIntoItself = errors.New("the destination is in this folder, and would be copied into itself; name one that is elsewhere")
	errInItself   = errors.New("this folder is mounted in itself, and would be copied again and again; unmount it, or name the folders in it one by one")
)

// isInto reports whether the folder that is copied here is one that its copy is put into,
// because that is mounted in the source too: all that is copied would be met again.
func (n *copyNode) isInto(id fileID) bool {
	for above := n.above; above != nil; above = above.above {
		if id.is(above.sides[atDestination].is) {
			return true
		}
	}
	return false
}

// isInItself reports whether a source is one of the folders that it was reached by.
func (n *copyNode) isInItself(id fileID) bool {
	for above := n.above; above != nil && !above.lender; above = above.above {
		if id.is(above.sides[atSource].is) {
			return true
		}
	}
	return false
}

// crossings keeps a call from copying without an end, which it could only do if folders
// that it makes became its sources.
//
// Such a folder X is below the way in by which it was made, D: the destination of a pair,
// or a mount below it; and below the last mount S by which it was reached as a source.
// Both are above X in one file system, so one is above the other, or is it: either D is
// among the folders that lead to the source X, or S among those that lead to the X that
// is made. Who opens the second of the two is refused: both ways in are remembered, and
// so are the folders that are being copied, until all in them is. There are few of
// these, however many folders there were.
type crossings struct {
	mu     sync.RWMutex
	waysIn [2]map[fileID]bool
	under  [2]map[fileID]int // folders that are being copied, and how often
}

// wayIn is told that a folder is the destination of a pair.
func (c *crossings) wayIn(id fileID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wayInLocked(atDestination, id)
}

func (c *crossings) wayInLocked(at end, id fileID) {
	if c.waysIn[at] == nil {
		c.waysIn[at] = map[fileID]bool{}
	}
	c.waysIn[at][id] = true
}

// isWayIn reports whether a folder is a way into what is copied to.
func (c *crossings) isWayIn(id fileID) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.waysIn[atDestination][id] && id != fileID{}
}

// enter is told of a folder that was opened, until leave. It refuses one by which two
// trees of the call would lead into each other.
func (c *crossings) enter(n *copyNode, at end, mounted bool) error {
	id, other := n.sides[at].is, atSource+atDestination-at
	if id == (fileID{}) {
		return nil
	}
	isRoot := n.root.job.node == n
	if isRoot {
		mounted = at == atDestination
	} else {
		mounted = mounted || id.device != n.above.sides[at].is.device
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waysIn[other][id] || mounted && c.under[other][id] > 0 {
		return copyFailure(opRefuse, errIntoItself)
	}
	if mounted {
		c.wayInLocked(at, id)
	}
	if c.under[at] == nil {
		c.under[at] = map[fileID]int{}
	}
	c.under[at][id]++
	n.sides[at].entered = true
	return nil
}

// leave is told that a folder has all that it is to have, or gets nothing more.
func (c *crossings) leave(n *copyNode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := range n.sides {
		side := &n.sides[at]
		if !side.entered {
			continue
		}
		side.entered = false
		if c.under[at][side.is]--; c.under[at][side.is] == 0 {
			delete(c.under[at], side.is)
		}
	}
}
