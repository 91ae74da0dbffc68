package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
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
		l.armLocked()
		return last, nil
	}
	return last, l.paceLocked()
}

// Wait waits until the record of an index is durable, under every policy; calls made at the
// same time share a sync. If ctx ends first it returns the cause, and the record may become
// durable or not. If TruncateAfter removes the record meanwhile, it is ErrNotFound. After
// Close it is nil for what is durable, and ErrClosed for all else.
func (l *Log) Wait(ctx context.Context, index uint64) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.commit.wakeAll()
		})
		defer stop()
	}
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
			l.commit.join.Enough()
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
		case l.exclusive || l.commit.leading:
			l.counts.Waits += waits
			waits = 0
			l.room.Wait()
		default:
			if err := l.leadLocked(l.opts.Policy.Sync.Waits()); err != nil {
				return 0, err
			}
		}
	}
}

// paceLocked moves what the policy wants in the kernel by now.
func (l *Log) paceLocked() error {
	p := l.opts.Policy
	l.armLocked()
	if len(l.pending) > int(p.Buffer) { // a larger record must not wait in memory: Policy.Loss counts two buffers
		return l.advanceLocked(background, l.last, false)
	}
	enough := p.Buffer
	if p.FlushBytes > 0 {
		enough = p.FlushBytes
	}
	if len(l.pending) >= int(enough) && !l.commit.leading {
		return l.leadLocked(false)
	}
	return nil
}

// armLocked starts the policy's clocks for what waits.
func (l *Log) armLocked() {
	l.flushTimer.Set(true)
	l.syncTimer.Set(true)
}

// due is called by the policy's clocks.
func (l *Log) due(sync bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	timer := &l.flushTimer
	if sync {
		timer = &l.syncTimer
	}
	timer.Set(false)
	if l.isClosing || l.final != nil {
		return
	}
	l.background.Add(1)
	defer l.background.Done()
	if err := l.advanceLocked(background, l.last, sync); err != nil {
		l.noteLocked(err)
		if !l.isClosing {
			timer.Set(true) // try again in a while
		}
	}
}

// noteLocked keeps an error that no call returns for the next one. A final one every call
// returns anyway.
func (l *Log) noteLocked(err error) {
	if err != nil && l.final == nil && l.unreported == nil && !errors.Is(err, ErrNotFound) {
		l.unreported = err
	}
}

// syncBytesLocked starts a sync by bytes if it is due.
func (l *Log) syncBytesLocked() {
	limit := int64(l.opts.Policy.Sync.Bytes)
	if limit == 0 || l.unsynced < limit || l.syncing || l.isClosing || l.final != nil {
		return
	}
	l.syncing = true
	l.background.Go(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		err := l.advanceLocked(background, l.flushed, true)
		l.syncing = false
		l.noteLocked(err)
		if err == nil {
			l.syncBytesLocked()
		}
	})
}
