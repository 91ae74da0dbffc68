package filecopy

import (
	"errors"
	"sync"
)

var (
	errIntoItself = errors.New("the destination is in this directory, and would be copied into itself; name one that is elsewhere")
	errInItself   = errors.New("this directory is mounted in itself, and would be copied again and again; unmount it, or name the directories in it one by one")
)

// overlap keeps a call from copying without end. That happens only if directories that the call
// makes become its sources.
//
// Let X be such a directory. X is below an entry D by which it was made: the destination of a pair,
// or a mount below it. X is also below an entry S by which it was reached as a source: the last
// mount above it. D and S are above X in one file system, so they are equal or one is above the
// other. Either D is among the directories that lead to the source X, or S is among those that lead
// to X as it is made. The second of the two is refused when it is opened. overlap holds both kinds
// of entries, and the directories in progress, which are few at any time.
type overlap struct {
	mu      sync.RWMutex
	entries [2]map[fileID]bool
	under   [2]map[fileID]int // directories in progress, with their count
}

// addEntry adds the destination of a pair to the entries.
func (c *overlap) addEntry(id fileID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addEntryLocked(atDestination, id)
}

func (c *overlap) addEntryLocked(at end, id fileID) {
	if c.entries[at] == nil {
		c.entries[at] = map[fileID]bool{}
	}
	c.entries[at][id] = true
}

// isEntry reports whether a directory is an entry of a destination.
func (c *overlap) isEntry(id fileID) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[atDestination][id] && id != fileID{}
}

// enter adds an opened directory until leave. It refuses one by which two trees of the call would
// lead into each other.
func (c *overlap) enter(n *copyNode, at end, mounted bool) error {
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
	if c.entries[other][id] || mounted && c.under[other][id] > 0 {
		return copyFailure(opRefuse, errIntoItself)
	}
	if mounted {
		c.addEntryLocked(at, id)
	}
	if c.under[at] == nil {
		c.under[at] = map[fileID]int{}
	}
	c.under[at][id]++
	n.sides[at].entered = true
	return nil
}

// leave removes a directory that is complete, or gets nothing more.
func (c *overlap) leave(n *copyNode) {
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
