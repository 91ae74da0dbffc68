package holdfast

import (
	"fmt"
	"time"
)

// Loss is the most that a crash may take of what Write has accepted (returned
// nil for) under a Policy. It is a promise about bytes, not a forecast: most
// crashes take less.
//
// What a Lane holds counts like what its Writer holds. Bytes given to Enqueue
// are accepted when WaitDurable says so.
type Loss struct {
	Process Bound // the process dies (panic, kill -9), the machine goes on
	Power   Bound // the machine dies (power cut, kernel panic)
}

// Unlimited is the Bytes or the Time of a [Bound] that the policy does not limit.
const Unlimited = -1

// A Bound limits a loss in bytes and by age. A loss keeps both limits; the zero
// Bound is no loss at all.
type Bound struct {
	// Bytes is the most bytes lost, or Unlimited.
	Bytes Size
	// Time is how long before the crash the oldest lost byte may have been
	// accepted, not counting the one flush or sync that was in flight when it was
	// due, and its own; or Unlimited. A file that takes longer than Time for a
	// write or a sync may add a few of these: the write in flight, a Write larger
	// than the buffer that came first, and the syncs before and after.
	Time time.Duration
}

// None reports whether nothing is lost.
func (b Bound) None() bool { return b == Bound{} }

// Limited reports whether the bound limits the loss in bytes or by time.
func (b Bound) Limited() bool { return b.Bytes != Unlimited || b.Time != Unlimited }

// Loss returns the bounds that p promises while the file accepts writes and
// syncs. It is the one source of every such statement.
func (p Policy) Loss() Loss {
	return Loss{Process: p.processLoss(), Power: p.powerLoss()}
}

func (p Policy) processLoss() Bound {
	if p.Buffer == 0 || p.acknowledgesDurable() {
		return Bound{}
	}
	return Bound{Bytes: 2 * p.Buffer, Time: shortest(p.FlushEvery, p.syncPeriod())}
}

func (p Policy) powerLoss() Bound {
	if p.acknowledgesDurable() {
		return Bound{}
	}
	return Bound{Bytes: Unlimited, Time: shortest(p.syncPeriod())}
}

// syncPeriod returns the period of a sync by time, or 0.
func (p Policy) syncPeriod() time.Duration { return max(0, time.Duration(p.Sync)) }

// shortest returns the smallest of the periods that are set, or Unlimited.
func shortest(periods ...time.Duration) time.Duration {
	least := time.Duration(Unlimited)
	for _, d := range periods {
		if d > 0 && (least == Unlimited || d < least) {
			least = d
		}
	}
	return least
}

// String says the bound in words, for a table's cell.
func (b Bound) String() string {
	switch {
	case b.None():
		return "nothing"
	case !b.Limited():
		return "anything not synced"
	case b.Time == Unlimited:
		return fmt.Sprintf("up to %v", b.Bytes)
	case b.Bytes == Unlimited:
		return fmt.Sprintf("the last %v + one sync", b.Time)
	default:
		return fmt.Sprintf("the last %v + one flush, up to %v", b.Time, b.Bytes)
	}
}
