// Package errorqueue calls a function once for each failure: in a goroutine of its own, one call at
// a time, in order. So the function may call the object that failed.
package errorqueue

import "sync"

// A Queue holds the failures that wait for their call. Its lock is the last one taken, and not held
// during a call. The zero Queue drops failures.
type Queue[E any] struct {
	mu      sync.Mutex
	call    func(E)
	waiting []E
	calling bool // a goroutine makes the calls
}

// To sets the function. Nil drops later failures.
func (q *Queue[E]) To(call func(E)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.call = call
}

// Add queues a call with e, and waits for nothing.
func (q *Queue[E]) Add(e E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.call == nil {
		return
	}
	q.waiting = append(q.waiting, e)
	if !q.calling {
		q.calling = true
		go q.run()
	}
}

func (q *Queue[E]) run() {
	ended := false
	defer func() {
		if !ended { // the function has called runtime.Goexit (a panic ends the program)
			go q.run()
		}
	}()
	for {
		q.mu.Lock()
		call := q.call
		if len(q.waiting) == 0 || call == nil {
			q.waiting, q.calling, ended = nil, false, true
			q.mu.Unlock()
			return
		}
		e := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		call(e)
	}
}
