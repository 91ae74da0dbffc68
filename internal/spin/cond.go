package spin

import "sync"

// A Cond is a sync.Cond on a Mutex L that allocates when the first goroutine waits. All calls are
// made with the lock.
type Cond struct {
	L    *Mutex
	made *sync.Cond
}

func (c *Cond) Wait() {
	if c.made == nil {
		c.made = sync.NewCond(c.L)
	}
	c.made.Wait()
}

func (c *Cond) Broadcast() {
	if c.made != nil {
		c.made.Broadcast()
	}
}

func (c *Cond) Signal() {
	if c.made != nil {
		c.made.Signal()
	}
}
