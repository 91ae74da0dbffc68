package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/deadline"
)

// Append appends records, one or an atomic batch: a crash leaves all of them or none. It returns
// the index of the last; the indices are consecutive. On nil the records are accepted: under
// sync=group and sync=each they are durable, without a buffer they are in the kernel, otherwise in
// memory.
//
// On an error with an index the records are accepted and still wait. They may become durable or
// not: don't append them again, but Wait for them. On an error with index 0 they are not in the
// log. Append does not retain records.
func (l *Log) Append(records ...[]byte) (last uint64, err error) {
	sync := l.opts.Policy.Sync
	if sync.Mode == holdfast.SyncEach {
		l.each.Lock()
		defer l.each.Unlock()
	}
	l.mu.Lock()
	switch last, err = l.acceptLocked(records); {
	case err == nil && sync.Waits():
		return last, l.advance(background, last, true) // without the lock
	case err == nil:
		err = l.paceLocked()
	default:
		last = 0
	}
	l.mu.Unlock()
	return last, err
}

// Enqueue is Append that waits for no sync, under any policy: see Wait. Under sync=group and
// sync=each the records stay in memory until a Wait or an Append, or until memory is full.
func (l *Log) Enqueue(records ...[]byte) (last uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, err = l.acceptLocked(records); err != nil {
		return 0, err
	}
	if l.opts.Policy.Sync.Waits() {
		l.clocksLocked()
		return last, nil
	}
	return last, l.paceLocked()
}

// Wait waits until the record of an index is durable, under every policy; calls made at the same
// time share a sync. If ctx ends first, Wait returns the context's cause, and the record may become
// durable or not. If TruncateAfter removes the record meanwhile, it returns ErrNotFound. After
// Close it returns nil for a durable record and ErrClosed for any other.
func (l *Log) Wait(ctx context.Context, index uint64) error {
	if l.durable.Load() >= index {
		return nil
	}
	l.mu.Lock()
	if last, closing := l.last, l.isClosing; index > last {
		l.mu.Unlock()
		if closing {
			return ErrClosed
		}
		return fmt.Errorf("%w: wait for %d, and the last is %d", ErrNotFound, index, last)
	}
	return l.advance(ctx, index, true)
}

// refusalLocked returns the error of a call that changes the log, or nil. An unreported failure is
// returned once.
func (l *Log) refusalLocked() error {
	switch {
	case l.final != nil:
		return l.final
	case l.isClosing:
		return ErrClosed
	case l.unreported != nil:
		err := l.unreported
		l.unreported = nil
		return err
	}
	return nil
}

// acceptLocked puts records into memory.
func (l *Log) acceptLocked(records [][]byte) (last uint64, err error) {
	if len(records) == 0 {
		return 0, errors.New("wal: no record was given to append")
	}
	size, most := frameSize(bodySize(records)), int64(largest-headerSize)
	if size > most {
		return 0, fmt.Errorf("wal: %d records take %d bytes, and the largest segment has room for %d; use smaller batches", len(records), size, most)
	}
	for waits := int64(1); ; {
		if err := l.refusalLocked(); err != nil {
			return 0, err
		}
		full := len(l.pending) > 0 && int64(len(l.pending))+size > int64(l.limit)
		if full {
			l.group.Hurry()
		}
		switch {
		case uint64(len(records)) > mostIndex-l.last:
			return 0, fmt.Errorf("wal: %d records behind index %d; the largest index is %d; begin a new log", len(records), l.last, uint64(mostIndex))
		case !l.exclusive && !full:
			l.pending = appendFrame(l.pending, l.last+1, records, 0)
			l.last += uint64(len(records))
			l.counts.Writes++
			l.age.Begin()
			return l.last, nil
		case l.exclusive || l.group.Leading():
			l.counts.Waits += waits
			waits = 0
			l.room.Wait()
		default:
			if err := l.moveLocked(batch{sync: l.opts.Policy.Sync.Waits()}); err != nil {
				return 0, err
			}
		}
	}
}

// paceLocked writes the pending records if the policy's limits by bytes are reached.
func (l *Log) paceLocked() error {
	l.clocksLocked()
	// A larger record must not wait in memory: Policy.Loss counts two buffers.
	if len(l.pending) > int(l.opts.Policy.Buffer) || len(l.pending) >= int(l.due.FlushBytes) && !l.group.Leading() {
		return l.advanceLocked(background, l.last, false)
	}
	return nil
}

// settleLocked is called at each end of a batch, also a failed one. It keeps the policy's limits:
// the clocks run while bytes wait, and work due by bytes is started.
func (l *Log) settleLocked() {
	l.room.Broadcast()
	l.clocksLocked()
	if _, due := l.dueLocked(); due && !l.starting {
		l.starting = true
		l.background.Add(1)
		go func() {
			defer l.background.Done()
			l.start()
		}()
	}
}

// clocksLocked starts the clocks of flushes and syncs, or stops one that has nothing to do.
func (l *Log) clocksLocked() {
	runs := !l.isClosing && l.final == nil
	l.flushTimer.Set(runs && l.waitsLocked() > 0)
	l.syncTimer.Set(runs && l.waitsLocked()+l.unsynced > 0)
}

// dueLocked reports whether a batch is due by bytes, and whether it must sync. After a failed flush
// none is due by bytes: a clock or a call tries again.
func (l *Log) dueLocked() (sync, due bool) {
	if l.isClosing || l.final != nil || l.opts.Policy.Sync.Waits() {
		return false, false
	}
	sync = l.due.SyncNow(l.unsynced)
	return sync, sync || l.failing == nil && len(l.pending) > 0 && len(l.pending) >= int(l.due.FlushBytes)
}

// start makes the batches that are due by bytes. A flush is left to a call that leads one now.
func (l *Log) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sync, due := l.dueLocked(); due && (sync || !l.group.Leading()); sync, due = l.dueLocked() {
		l.moveInBackgroundLocked(sync)
	}
	l.starting = false
}

// fired is called by the policy's clocks. Bytes that are left are due again later.
func (l *Log) fired(timer *deadline.Timer, sync bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	timer.Set(false)
	if l.isClosing || l.final != nil {
		return
	}
	l.background.Add(1)
	defer l.background.Done()
	l.moveInBackgroundLocked(sync)
}

// noteLocked keeps a failure that no call returns for the next call. A final one needs no note:
// every call returns it.
func (l *Log) noteLocked(err error) {
	if e, ok := err.(*Error); ok && !e.reported && l.final == nil && l.unreported == nil {
		l.unreported = err
	}
}

// returnedLocked marks err as reported when a call returns it from a batch that other calls share:
// the next call need not return it too.
func (l *Log) returnedLocked(err error) error {
	if e, ok := err.(*Error); ok {
		e.reported = true
		if l.unreported == err {
			l.unreported = nil
		}
	}
	return err
}
