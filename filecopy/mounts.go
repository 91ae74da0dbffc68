package filecopy

import (
	"errors"
	"sync"
)

var (
	errIntoItself = errors.New("the destination is in this directory, and would be copied into itself; name one that is elsewhere")
	errInItself   = errors.New("this directory is mounted in itself, and would be copied again and again; unmount it, or name the directories in it one by one")
)

// crossings keeps a call from copying without an end, which it could only do if directories
// that it makes became its sources.
//
// Such a directory X is below the way in by which it was made, D: the destination of a pair,
// or a mount below it. It is also below the last mount S by which it was reached as a
// source. D and S are above X in one file system. So they are the same, or one is above the
// other. Either D is among the directories that lead to the source X, or S among those that
// lead to the X that is made. The second of the two is refused when it is opened. Both ways
// in are in crossings, and the directories that are being copied, until all in them is.
// There are few of these, however many directories there were.
type crossings struct {
	mu     sync.RWMutex
	waysIn [2]map[fileID]bool
	under  [2]map[fileID]int // directories that are being copied, and how often
}

// wayIn notes that a directory is the destination of a pair.
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

// isWayIn reports whether a directory is a way into what is copied to.
func (c *crossings) isWayIn(id fileID) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.waysIn[atDestination][id] && id != fileID{}
}

// enter notes a directory that was opened, until leave. It refuses one by which two trees of
// the call would lead into each other.
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

// leave forgets a directory, which has all that it is to have, or gets nothing more.
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
