//go:build go1.25

package readahead

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestGoroutineReadsAheadWhereItGains(t *testing.T) {
	const block = 1000
	check := func(mode Mode, regular bool, reading, working time.Duration, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			p := newPace(mode, regular)
			started := -1
			for i := range 3 * paceBlocks {
				if p.wantsAhead(int64(i*block), block) {
					started = i
					break
				}
				p.reads()
				time.Sleep(reading)
				p.hasRead()
				time.Sleep(working)
			}
			if started != want {
				t.Errorf("mode %d, regular %v, reading %v, working %v: started before block %d, want %d", mode, regular, reading, working, started, want)
			}
		})
	}
	const none = -1
	check(Regular, true, worthAhead, 2*worthAhead, paceBlocks)
	check(Regular, true, 2*worthAhead, 2*worthAhead, paceBlocks)
	check(Regular, true, worthAhead-10*time.Microsecond, time.Second, none)
	check(Regular, true, time.Second, worthAhead-10*time.Microsecond, none)
	check(Regular, false, time.Second, time.Second, none)
	check(Never, true, time.Second, time.Second, none)
	check(Always, false, 0, 0, 1)
}
