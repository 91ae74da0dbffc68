package latency

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/probe"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

// stampRole is the work of the process that writes until it is killed.
const stampRole = "stamp-until-killed"

// killedWrites is the task of killing a process that writes records at a rate, and of
// reading the records that it had accepted. The number of records before the kill is random: at
// least `least`, and less than twice that.
func (o sink) killedWrites(least, size int64) trial.Task {
	after := least + rand.Int64N(least)
	return trial.Task{
		Writes: 2 * least * size,
		Do: func(ctx context.Context, c *trial.Clock) error {
			accepted, err := o.kill(ctx, c, after, size)
			if err != nil {
				return err
			}
			c.Lap(trial.Work)
			l, err := lossOf(c.Path, accepted, size)
			if err != nil {
				return err
			}
			c.Done(l.accepted, l.accepted*size)
			c.Tell("accepted_records", float64(l.accepted))
			c.Tell("readable_records", float64(l.readable))
			c.Tell("lost_records", float64(l.lost))
			c.Tell("lost_bytes", float64(l.lostBytes))
			c.Tell("lost_age_ns", float64(l.age))
			return nil
		},
	}
}

// kill starts a process that writes, and kills it when it has reported `after` Writes.
// It returns the times at which those Writes returned that were reported in the end.
func (o sink) kill(ctx context.Context, c *trial.Clock, after, size int64) ([]time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := study.StartCompanion(ctx, c, stampRole, c.Path, o.by, o.policy.String(), strconv.FormatInt(size, 10))
	if err != nil {
		return nil, err
	}
	var accepted []time.Duration
	reports := bufio.NewReader(p.Out)
	for one := make([]byte, 8); ; {
		if _, err := io.ReadFull(reports, one); err != nil {
			break // it is dead: wait says why
		}
		at := time.Duration(binary.LittleEndian.Uint64(one))
		if n := len(accepted); n > 0 && (at < accepted[n-1] || at > accepted[n-1]+time.Hour) {
			cancel() // its report has no times
			return nil, errors.Join(fmt.Errorf("record %d was written at %v, and the one before at %v", n, at, accepted[n-1]), p.Wait())
		}
		accepted = append(accepted, at)
		if int64(len(accepted)) == after {
			err = p.Cmd.Process.Kill()
		}
	}
	died := p.Wait()
	if err = errors.Join(err, ctx.Err()); err == nil && int64(len(accepted)) < after {
		err = fmt.Errorf("the writing process ended by itself after %d of %d records: %v", len(accepted), after, died)
	}
	return accepted, err
}

// stampUntilKilled is the second process: it writes records to a new file at args[0] by
// the sink args[1] and args[2], of args[3] bytes each. It reports on stdout when each
// Write returned. It ends when the other end of stdout is closed.
func stampUntilKilled(ctx context.Context, args []string, _ io.Reader, stdout io.Writer) error {
	if len(args) != 4 {
		return fmt.Errorf("a writer takes a file, a sink, its policy and the size of its records, and has %d arguments", len(args))
	}
	policy, err := holdfast.ParsePolicy(args[2])
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil || size < leastStamped || size > int64(study.MaxRecord) {
		return fmt.Errorf("records of %q bytes can't be written", args[3])
	}
	f, err := sink{args[1], policy}.create(args[0])
	if err != nil {
		return err
	}
	return errors.Join(acknowledge(ctx, f, size, stdout), f.Close())
}

// acknowledge writes records when they are due and reports each, until that fails.
func acknowledge(ctx context.Context, f io.Writer, size int64, stdout io.Writer) error {
	record, b := newStamped(size), newBeat(killedRate)
	for i := int64(0); ; i++ {
		if err := b.await(ctx, i); err != nil {
			return err
		}
		if _, err := f.Write(record.fill(i, 0)); err != nil {
			return err
		}
		now, err := probe.Monotonic()
		if err != nil {
			return err
		}
		if _, err := stdout.Write(binary.LittleEndian.AppendUint64(nil, uint64(now))); err != nil {
			return err
		}
	}
}

// A killedLoss counts the records of a killed process: accepted, readable and lost.
type killedLoss struct {
	accepted, readable int64
	lost, lostBytes    int64
	age                time.Duration // of the oldest that was lost, when the process last reported one
}

// lossOf reads the file at path. It must hold the first records, whole and in order; one more may
// be torn.
func lossOf(path string, accepted []time.Duration, size int64) (killedLoss, error) {
	readable, torn, err := readStamped(path, size)
	l := killedLoss{accepted: int64(len(accepted)), readable: readable}
	if l.lost = max(0, l.accepted-readable); err == nil && l.lost > 0 {
		l.lostBytes = l.lost*size - torn
		l.age = accepted[l.accepted-1] - accepted[readable]
	}
	return l, err
}

// Roles are the work of the study's second processes.
var Roles = map[string]study.Role{watchRole: watchFile, stampRole: stampUntilKilled}
