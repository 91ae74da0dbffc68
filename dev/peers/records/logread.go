package records

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	tidwall "github.com/tidwall/wal"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
	"github.com/holdfast-go/holdfast/wal"
)

// A readable is a log with records 1 to n.
type readable struct {
	fill  func(index uint64, batch [][]byte) error // with consecutive records
	read  func(index uint64) ([]byte, error)
	close func() error
}

// logReads compares what it costs to read one record by its index, from a log that is open and in the page cache.
func logReads() (all []*group) {
	for _, size := range []int{durableSize, 4 * kib} {
		for _, order := range []string{"order", "random"} {
			w := work{goroutines: 1, each: min(100_000, 40<<20/size), size: size}
			from := func(open func(dir string) (*readable, error)) how {
				return how{whole: func(dir string, w work) (command.Sample, error) { return readLog(dir, w, order == "random", open) }}
			}
			g := newGroup(fmt.Sprintf("logread/%s/size=%d", order, size), fmt.Sprintf("reads of records of %d bytes by their index, in %s order", size, map[string]string{"order": "their own", "random": "random"}[order]), w, []*arm{
				{Name: "holdfast", Note: "package wal: Read", Do: from(readHoldfast)},
				{Name: "raft-wal", Note: "hashicorp's: GetLog", Do: from(readRaft)},
				{Name: "tidwall-wal", Note: "Read; it keeps the last segments as a whole in memory", Do: from(readTidwall)},
			})
			g.Notes = []string{"The clock runs while as many records as the log has are read. Each is compared with what was written, within it."}
			all = append(all, g)
		}
	}
	w := work{goroutines: 1, each: 2000, size: durableSize}
	follow := func(o wal.Options, channel bool) how {
		return how{whole: func(dir string, w work) (command.Sample, error) { return followLog(dir, w, o, channel) }}
	}
	durable, lazy := wal.Options{Policy: holdfast.Durable()}, wal.Options{Policy: holdfast.Unbuffered()}
	g := newGroup(fmt.Sprintf("logread/follow/size=%d", w.size), fmt.Sprintf("records of %d bytes that another goroutine waits for", w.size), w, []*arm{
		{Name: "holdfast", Note: "package wal, sync=group: Follow", Do: follow(durable, false)},
		{Name: "holdfast-unbuffered", Note: "the same under sync=never", Do: follow(lazy, false)},
		{Name: "limit channel", Note: "the index goes through a channel, and nothing is read", Do: follow(durable, true)},
		{Name: "limit channel-unbuffered", Note: "the same under sync=never", Do: follow(lazy, true)},
	})
	g.Notes = []string{"A record's time is the median from Append's return until the other goroutine has the record; 0 if that is before the return. The CPU time is of both goroutines and includes Append. raft-wal and tidwall/wal wake no reader."}
	return append(all, g)
}

// followLog appends records, and waits until another goroutine has each.
func followLog(dir string, w work, o wal.Options, channel bool) (s command.Sample, err error) {
	l, err := openWAL(dir, o, w)
	if err != nil {
		return s, err
	}
	ctx, stop := context.WithCancel(context.Background())
	appended, had, over := make(chan uint64, 1), make(chan time.Time, 1), make(chan error, 1)
	go func() {
		if channel {
			for range appended {
				had <- time.Now()
			}
			over <- nil
			return
		}
		for r, err := range l.Follow(ctx, 1) {
			now := time.Now()
			if err != nil {
				if err == context.Canceled {
					err = nil
				}
				over <- err
				return
			}
			if binary.LittleEndian.Uint64(r.Data) != r.Index-1 {
				over <- fmt.Errorf("record %d is another", r.Index)
				return
			}
			had <- now
		}
	}()
	took, rec, cpu := make([]time.Duration, w.records()), newRecord(w.size, 0), command.CPUTime()
	for i := range took {
		rec.number(i)
		last, err := l.Append(rec)
		now := time.Now()
		if err != nil {
			stop()
			return s, errors.Join(err, l.Close())
		}
		if channel {
			appended <- last
		}
		select {
		case at := <-had:
			took[i] = max(0, at.Sub(now))
		case err := <-over:
			stop()
			return s, errors.Join(err, l.Close())
		}
	}
	slices.Sort(took)
	s = command.Sample{Elapsed: max(1, took[len(took)/2]*time.Duration(len(took))), CPU: command.CPUTime() - cpu, Units: len(took)}
	stop()
	close(appended)
	return s, errors.Join(<-over, l.Close())
}

// readLog fills a log, and reads as many records as it has.
func readLog(dir string, w work, random bool, open func(dir string) (*readable, error)) (s command.Sample, err error) {
	l, err := open(dir)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	const batch = 1000
	for at := 0; at < w.records(); at += batch {
		var some [][]byte
		for i := at; i < min(at+batch, w.records()); i++ {
			r := newRecord(w.size, 0)
			r.number(i)
			some = append(some, r)
		}
		if err := l.fill(uint64(at+1), some); err != nil {
			return s, err
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	start, cpu := time.Now(), command.CPUTime()
	for i := range uint64(w.records()) {
		if random {
			i = r.Uint64N(uint64(w.records()))
		}
		data, err := l.read(i + 1)
		if err != nil {
			return s, err
		}
		if len(data) != w.size || binary.LittleEndian.Uint64(data) != i || binary.LittleEndian.Uint64(data[len(data)-8:]) != ^i {
			return s, fmt.Errorf("record %d is another", i+1)
		}
	}
	return command.Sample{Elapsed: time.Since(start), CPU: command.CPUTime() - cpu, Units: w.records()}, nil
}

func readHoldfast(dir string) (*readable, error) {
	l, _, err := wal.Open(logDir(dir), wal.Options{Policy: holdfast.Durable()})
	if err != nil {
		return nil, err
	}
	return &readable{read: l.Read, close: l.Close, fill: func(_ uint64, batch [][]byte) error {
		for _, r := range batch { // a frame each, as one Append of one record leaves it
			if _, err := l.Enqueue(r); err != nil {
				return err
			}
		}
		return l.Wait(context.Background(), l.Last())
	}}, nil
}

func readRaft(dir string) (*readable, error) {
	if err := os.Mkdir(logDir(dir), 0o777); err != nil {
		return nil, err
	}
	l, shut, err := raftLog(logDir(dir))
	if err != nil {
		return nil, err
	}
	return &readable{close: shut, fill: func(index uint64, batch [][]byte) error {
		var logs []*raft.Log
		for i, r := range batch {
			logs = append(logs, &raft.Log{Index: index + uint64(i), Data: r})
		}
		return l.StoreLogs(logs)
	}, read: func(index uint64) ([]byte, error) {
		var r raft.Log
		err := l.GetLog(index, &r)
		return r.Data, err
	}}, nil
}

func readTidwall(dir string) (*readable, error) {
	l, err := tidwall.Open(logDir(dir), nil)
	if err != nil {
		return nil, err
	}
	return &readable{read: l.Read, close: l.Close, fill: func(index uint64, batch [][]byte) error {
		var b tidwall.Batch
		for i, r := range batch {
			b.Write(index+uint64(i), r)
		}
		return l.WriteBatch(&b)
	}}, nil
}
