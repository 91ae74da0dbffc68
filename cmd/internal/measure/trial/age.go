package trial

import "time"

// lookEvery is the interval at which an open loop looks which bytes are durable. The look uses CPU time
// in the trial, and in the empty cell as well.
const lookEvery = 5 * time.Millisecond

// watchAge returns the greatest age of a byte that was not durable, while the workers
// write to w. It returns once they are done.
func (c *workers) watchAge(w Target) time.Duration {
	done := make(chan struct{})
	go func() {
		c.done.Wait()
		close(done)
	}()
	durable, ok := w.(interface{ Durable() int64 })
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var a age
	for {
		select {
		case <-done:
			return a.oldest
		case <-ticker.C:
			if ok {
				// In this order no byte seems older than it is.
				written, now := w.Written(), time.Now()
				a.look(now, written, durable.Durable())
			}
		}
	}
}

// An age follows how long bytes have waited to be durable. Its result is a lower bound: a byte may have
// been written just after the look before the one that first saw it.
type age struct {
	looks  []look // looks with bytes that were not durable at the last look
	oldest time.Duration
}

type look struct {
	at      time.Time
	written int64
}

func (a *age) look(now time.Time, written, durable int64) {
	for len(a.looks) > 0 && a.looks[0].written <= durable {
		a.looks = a.looks[1:]
	}
	if written > durable && (len(a.looks) == 0 || a.looks[len(a.looks)-1].written < written) {
		a.looks = append(a.looks, look{now, written})
	}
	if len(a.looks) > 0 {
		a.oldest = max(a.oldest, now.Sub(a.looks[0].at))
	}
}
