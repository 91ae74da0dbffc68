package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/deadline"
)

// Append appends records, one or an atomic batch: a crash leaves all of them or none. It
// returns the index of the last; they are consecutive. On nil they are accepted as the policy
// says: under sync=group and sync=each durable, without a buffer in the kernel, else in
// memory.
//
// On an error with an index the records are accepted and wait, and may become durable or
// not. Don't append them again, but Wait for them. On an error with 0 they are not in the
// log. Append keeps no record.
func (l *Log) Append(records ...[]byte) (last uint64, err error) {
	sync := l.opts.Policy.Sync
	if sync.Mode == holdfast.SyncEach {
		l.each.Lock()
		defer l.each.Unlock()
	}
	l.mu.Lock()
	locked := true
	defer func() {
		if locked {
			l.mu.Unlock()
		}
	}()
	if last, err = l.acceptLocked(records); err != nil {
		return 0, err
	}
	if sync.Waits() {
		locked = false
		return last, l.advance(background, last, true)
	}
	return last, l.paceLocked()
}

// Enqueue is Append that waits for no sync, whatever the policy: see Wait. Under sync=group
// and sync=each the records stay in memory until a Wait or an Append, or until it is full.
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

// Wait waits until the record of an index is durable, under every policy; calls made at the
// same time share a sync. If ctx ends first it returns the cause, and the record may become
// durable or not. If TruncateAfter removes the record meanwhile, it is ErrNotFound. After
// Close it is nil for what is durable, and ErrClosed for all else.
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

// refusalLocked is the error of every call that changes the log, or nil.
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
	size, most := frameSize(bodySize(records)), int64(l.opts.SegmentSize)-headerSize
	if size > most {
		return 0, fmt.Errorf("wal: %d records take %d bytes, and a segment has room for %d; use smaller batches, or a larger SegmentSize", len(records), size, most)
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

// paceLocked moves what the policy wants in the kernel by now.
func (l *Log) paceLocked() error {
	l.clocksLocked()
	// A larger record must not wait in memory: Policy.Loss counts two buffers.
	if len(l.pending) > int(l.opts.Policy.Buffer) || len(l.pending) >= int(l.due.FlushBytes) && !l.group.Leading() {
		return l.advanceLocked(background, l.last, false)
	}
	return nil
}

// settleLocked is called at each end of a batch, however it ended. It keeps the policy's promises: the clocks run if
// bytes wait, and what is due by bytes is started.
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

// clocksLocked has each clock run while bytes wait for it, and stand still else.
func (l *Log) clocksLocked() {
	runs := !l.isClosing && l.final == nil
	l.flushTimer.Set(runs && l.waitsLocked() > 0)
	l.syncTimer.Set(runs && l.waitsLocked()+l.unsynced > 0)
}

// dueLocked reports whether a batch is due by bytes that no call makes, and whether it syncs. A flush that has failed waits for a
// clock or a call.
func (l *Log) dueLocked() (sync, due bool) {
	if l.isClosing || l.final != nil || l.opts.Policy.Sync.Waits() {
		return false, false
	}
	sync = l.due.SyncNow(l.unsynced)
	return sync, sync || l.failing == nil && len(l.pending) > 0 && len(l.pending) >= int(l.due.FlushBytes)
}

// start makes what is due by bytes. It leaves a flush to the calls that make one now.
func (l *Log) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sync, due := l.dueLocked(); due && (sync || !l.group.Leading()); sync, due = l.dueLocked() {
		l.moveInBackgroundLocked(sync)
	}
	l.starting = false
}

// fired is called by the policy's clocks. What is left then is due again after a while.
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

// noteLocked keeps a failure that no call returns for the next one. A final one every call
// returns anyway.
func (l *Log) noteLocked(err error) {
	if e, ok := err.(*Error); ok && !e.told && l.final == nil && l.unreported == nil {
		l.unreported = err
	}
}

// returnedLocked is called with what a call returns of a batch that it shares with others: the next call need not return it too.
func (l *Log) returnedLocked(err error) error {
	if e, ok := err.(*Error); ok {
		e.told = true
		if l.unreported == err {
			l.unreported = nil
		}
	}
	return err
}
