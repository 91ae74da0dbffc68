package holdfast

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/deadline"
)

// A Policy says when the bytes of a [Writer] move from its memory to the kernel
// and from there to stable storage. It is one comparable value with one line of
// text, such as
//
//	buffer=64KiB,flush=100ms,sync=1s
//
// so it can be a flag, a line of a configuration file, a map key or the name of
// a benchmark. [Policy.Loss] returns the bounds that it promises.
//
// The zero Policy is [Unbuffered]: every Write goes directly to the kernel, and
// nothing is synced. No field's zero stands for a default.
type Policy struct {
	// Buffer is the size of the buffer in memory. 0 means that every Write goes directly to the
	// kernel. While one buffer is flushed a second one fills, so a Writer holds up to 2×Buffer
	// bytes. A flush to an [os.File] starts at 256 KiB even if the buffer is larger: the bytes are
	// still in the CPU's cache. A Write of 64 KiB or more bypasses every buffer.
	Buffer Size

	// FlushEvery is the longest time that a byte waits in memory before its flush
	// starts; 0 means that time alone never flushes.
	FlushEvery time.Duration

	// FlushBytes is the number of bytes in memory that starts a flush. It is less
	// than Buffer: the rest of the buffer takes bytes while the kernel is slow. 0
	// means that a flush starts when the buffer is full.
	FlushBytes Size

	// Sync says when the Writer syncs its file.
	Sync Sync
}

// A Sync says when a Writer syncs its file. The zero Sync is never.
type Sync struct {
	Mode SyncMode

	// Every and Bytes are the limits of SyncPeriodic: at least one is above 0. In every
	// other mode both are 0. A sync starts when an accepted byte has waited for Every, or
	// when Bytes bytes in the kernel are not durable, whichever comes first. If a sync is
	// in flight then, the next one starts right after it.
	Every time.Duration
	Bytes Size
}

// A SyncMode is the kind of a [Sync].
type SyncMode uint8

const (
	// SyncNever syncs only when the caller calls Sync; else the kernel chooses the time.
	SyncNever SyncMode = iota
	// SyncClose syncs once, in Close.
	SyncClose
	// SyncPeriodic syncs in the background, by time, by bytes, or by both.
	SyncPeriodic
	// SyncGroup makes Write return when its bytes are durable; concurrent Writes
	// share one sync.
	SyncGroup
	// SyncEach makes Write return when its bytes are durable, after a sync of its
	// own.
	SyncEach
)

// syncNames holds the text of each mode except SyncPeriodic, whose text is its limits.
var syncNames = [...]string{SyncNever: "never", SyncClose: "close", SyncPeriodic: "", SyncGroup: "group", SyncEach: "each"}

// SyncEvery is SyncPeriodic by time alone.
func SyncEvery(d time.Duration) Sync { return Sync{Mode: SyncPeriodic, Every: d} }

// Waits reports whether a Write returns only when its bytes are durable.
func (s Sync) Waits() bool { return s.Mode >= SyncGroup }

// maxBuffer keeps a mistaken unit (64GiB for 64MiB) from taking all memory. Where int has
// 32 bits, twice the buffer must fit into it.
const maxBuffer = min(GiB, Size(math.MaxInt/2))

// Unbuffered hands every Write directly to the kernel and never syncs, as a bare
// os.File does.
func Unbuffered() Policy { return Policy{} }

// Buffered buffers size bytes in memory before it writes them, without a bound by
// time, as bufio.Writer does.
func Buffered(size Size) Policy { return Policy{Buffer: size} }

// Periodic buffers 64 KiB in memory. The sync that covers a byte starts at most every after
// the byte was accepted. A crash may take the bytes of one period and of one sync's time:
// to lose at most 1s, use 500ms, as long as a sync takes no more than the other 500ms.
// Validate refuses a period that is not positive.
func Periodic(every time.Duration) Policy {
	return Policy{Buffer: 64 * KiB, Sync: SyncEvery(every)}
}

// Durable makes Write return when its bytes are on stable storage; concurrent
// Writes share one sync (group commit).
func Durable() Policy { return Policy{Buffer: 64 * KiB, Sync: Sync{Mode: SyncGroup}} }

// EachDurable gives every Write a sync of its own. It is the simplest policy and costs the
// most; [Durable] promises the same.
func EachDurable() Policy { return Policy{Sync: Sync{Mode: SyncEach}} }

// Validate returns nil, or an error that names the invalid field. It does not change p.
func (p Policy) Validate() error {
	switch {
	case p.Buffer < 0:
		return fmt.Errorf("policy: buffer=%d is negative; use 0 to write directly to the kernel", int64(p.Buffer))
	case p.Buffer > maxBuffer:
		return fmt.Errorf("policy: buffer=%v is more than %v; a Writer holds twice its buffer in memory", p.Buffer, maxBuffer)
	case p.FlushEvery < 0 || p.FlushBytes < 0:
		return fmt.Errorf("policy: flush=%s is negative; leave it out to flush only when the buffer is full", limits(p.FlushEvery, p.FlushBytes))
	case p.Buffer == 0 && (p.FlushEvery > 0 || p.FlushBytes > 0):
		return fmt.Errorf("policy: flush=%s has nothing to flush with buffer=0; give a buffer, such as buffer=64KiB, or leave flush out", limits(p.FlushEvery, p.FlushBytes))
	case p.FlushBytes > 0 && p.FlushBytes >= p.Buffer:
		return fmt.Errorf("policy: flush=%v starts no flush before buffer=%v is full, which starts one anyway; give a flush of less than the buffer, or leave it out", p.FlushBytes, p.Buffer)
	}
	return p.Sync.validate()
}

func (s Sync) validate() error {
	switch {
	case int(s.Mode) >= len(syncNames):
		return fmt.Errorf("policy: sync=%v is no mode; use SyncNever, SyncClose, SyncPeriodic, SyncGroup or SyncEach", s)
	case s.Mode != SyncPeriodic && (s.Every != 0 || s.Bytes != 0):
		return fmt.Errorf("policy: sync=%v can't keep the limit %s; use the mode SyncPeriodic, or leave Every and Bytes 0", s, limits(s.Every, s.Bytes))
	case s.Mode == SyncPeriodic && (s.Every < 0 || s.Bytes < 0 || s.Every == 0 && s.Bytes == 0):
		return fmt.Errorf("policy: sync=%v has no limit above 0; use %s", s, syncForms)
	case s.Bytes > tib:
		return fmt.Errorf("policy: sync=%v is more than %v; use fewer bytes, such as 4MiB", s, tib)
	}
	return nil
}

// syncForms lists the values of sync= in a policy's text.
const syncForms = "never, close, group, each, a duration such as 1s, bytes such as 4MiB, or both such as 1s/4MiB"

// String returns the text that [ParsePolicy] turns back into p.
func (p Policy) String() string {
	flush := ""
	if p.FlushEvery != 0 || p.FlushBytes != 0 {
		flush = ",flush=" + limits(p.FlushEvery, p.FlushBytes)
	}
	return "buffer=" + p.Buffer.String() + flush + ",sync=" + p.Sync.String()
}

// String returns never, close, group, each, or the limits, such as 1s/4MiB.
func (s Sync) String() string {
	switch {
	case s.Mode == SyncPeriodic:
		return limits(s.Every, s.Bytes)
	case int(s.Mode) < len(syncNames):
		return syncNames[s.Mode]
	}
	return fmt.Sprintf("SyncMode(%d)", s.Mode)
}

// limits returns the text of a limit by time, by bytes, or by both: 1s/4MiB.
func limits(every time.Duration, bytes Size) string {
	switch {
	case bytes == 0:
		return every.String()
	case every == 0:
		return bytes.String()
	}
	return every.String() + "/" + bytes.String()
}

// policyHint ends the errors about text that is not a policy.
const policyHint = "write it like buffer=64KiB,flush=100ms,sync=1s, or give a name alone: unbuffered, buffered=64KiB, periodic=1s, durable or eachdurable"

// ParsePolicy reads a policy's text: fields joined by commas, in any order, each
// at most once. A field that is left out has its zero value (buffer=0, no flush by
// time or bytes, sync=never). But a policy that syncs by time or bytes must name its
// buffer: with buffer=0 each Write is a system call. The text may also be the name of a
// policy alone: unbuffered, buffered=64KiB, periodic=1s (or 4MiB, or 1s/4MiB), durable,
// eachdurable.
//
// The policy it returns is valid, and ParsePolicy(p.String()) == p for every valid p.
func ParsePolicy(text string) (Policy, error) {
	if strings.TrimSpace(text) == "" {
		return Policy{}, fmt.Errorf("policy is empty; %s", policyHint)
	}
	var p Policy
	named, err := p.setNamed(strings.TrimSpace(text))
	if !named && err == nil {
		err = p.setFields(text)
	}
	if err != nil {
		return Policy{}, fmt.Errorf("policy %q: %w", text, err)
	}
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// setNamed reads the name of a constructor and its argument: periodic=1s.
func (p *Policy) setNamed(text string) (named bool, err error) {
	name, value, hasValue := strings.Cut(text, "=")
	switch name {
	case "unbuffered":
		*p = Unbuffered()
	case "durable":
		*p = Durable()
	case "eachdurable":
		*p = EachDurable()
	case "buffered":
		p.Buffer, err = ParseSize(value)
	case "periodic":
		*p = Periodic(0)
		err = p.Sync.setLimits(value)
	default:
		return false, nil
	}
	switch takesValue := name == "buffered" || name == "periodic"; {
	case takesValue && !hasValue:
		err = fmt.Errorf("%s takes a value; write it like buffered=64KiB or periodic=1s", name)
	case takesValue && err != nil:
		err = fmt.Errorf("%s: %w", name, err)
	case !takesValue && hasValue:
		err = fmt.Errorf("%s takes no value; write it alone", name)
	}
	return true, err
}

func (p *Policy) setFields(text string) error {
	seen := map[string]bool{}
	for field := range strings.SplitSeq(text, ",") {
		field = strings.TrimSpace(field)
		if parts := strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(" \t;", r) }); len(parts) > 1 && strings.Count(field, "=") == len(parts) {
			return fmt.Errorf("%q is no field; separate fields by commas: %q", field, strings.Join(parts, ","))
		}
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			return fmt.Errorf("field %q has no value; %s", field, policyHint)
		}
		if seen[key] {
			return fmt.Errorf("field %q is given twice", key)
		}
		seen[key] = true
		if err := p.set(key, value); err != nil {
			return err
		}
	}
	if p.Sync.Mode == SyncPeriodic && !seen["buffer"] {
		return fmt.Errorf("sync=%v says nothing of a buffer, and without one each Write is a system call; add buffer=64KiB, or buffer=0 if that is meant", p.Sync)
	}
	return nil
}

func (p *Policy) set(key, value string) (err error) {
	switch key {
	case "buffer":
		p.Buffer, err = ParseSize(value)
	case "flush":
		p.FlushEvery, p.FlushBytes, err = parseLimits(value)
	case "sync":
		err = p.Sync.set(value)
	default:
		return fmt.Errorf("unknown field %q; the fields are buffer, flush and sync, and a name such as durable stands alone", key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (s *Sync) set(value string) error {
	for mode, name := range syncNames {
		if value == name && name != "" {
			*s = Sync{Mode: SyncMode(mode)}
			return nil
		}
	}
	return s.setLimits(value)
}

func (s *Sync) setLimits(value string) error {
	every, bytes, err := parseLimits(value)
	if err != nil || every == 0 && bytes == 0 {
		return fmt.Errorf("%q is not %s", value, syncForms)
	}
	*s = Sync{SyncPeriodic, every, bytes}
	return nil
}

// parseLimits reads a duration, a size, or both: 1s/4MiB. It refuses a number without a
// unit: 1 could be a second or a byte.
func parseLimits(value string) (every time.Duration, bytes Size, err error) {
	for i, part := range strings.Split(value, "/") {
		d, err := time.ParseDuration(part)
		switch {
		case err == nil && d < 0:
			return 0, 0, fmt.Errorf("%q is negative", part)
		case err == nil && (d == 0 && i > 0 || every > 0):
			return 0, 0, fmt.Errorf("%q is not a duration and a size, such as 1s/4MiB", value)
		case err == nil:
			every = d
			continue
		}
		n, err := ParseSize(part)
		switch {
		case err != nil || strings.Trim(part, "0123456789") == "":
			return 0, 0, fmt.Errorf("%q is not a duration such as 100ms or a size such as 64KiB, each with its unit", part)
		case n == 0 || bytes > 0 || i > 0 && every == 0:
			return 0, 0, fmt.Errorf("%q is not a duration and a size, such as 1s/4MiB", value)
		}
		bytes = n
	}
	return every, bytes, nil
}

// MarshalText returns the policy's text, or the error of Validate.
func (p Policy) MarshalText() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return []byte(p.String()), nil
}

// UnmarshalText parses text as [ParsePolicy] does; on an error p is unchanged.
func (p *Policy) UnmarshalText(text []byte) error {
	v, err := ParsePolicy(string(text))
	if err == nil {
		*p = v
	}
	return err
}

// Due holds the limits, by time and by bytes, at which bytes must move under a Policy. Everything in this
// module that writes under a Policy follows them.
type Due struct {
	Flush      time.Duration // the longest time that a byte waits in memory before its flush starts; 0: no limit
	FlushBytes Size          // bytes in memory that start a flush
	Sync       time.Duration // the longest time that a byte waits before its sync starts; 0: no limit
	SyncBytes  Size          // unsynced bytes in the kernel that start a sync; 0: no limit
	// Dirty is the number of unsynced bytes in the kernel at which the next flush waits for a sync, because the
	// disk is slower than the callers. 0 is no limit: a policy with a FlushEvery flushes in time instead.
	Dirty Size
}

// SyncNow reports whether a sync is due when the kernel holds the number of unsynced bytes.
func (d Due) SyncNow(bytes int64) bool { return d.SyncBytes > 0 && bytes >= int64(d.SyncBytes) }

// Due returns the limits of p.
func (p Policy) Due() Due {
	d := Due{
		// A byte that is due for a sync must not wait in memory for an earlier sync.
		Flush:      deadline.Shortest(p.FlushEvery, p.Sync.Every),
		FlushBytes: cmp.Or(p.FlushBytes, p.Buffer),
		Sync:       p.Sync.Every,
		SyncBytes:  p.Sync.Bytes,
	}
	if p.FlushEvery == 0 {
		d.Dirty = 2 * p.Sync.Bytes
	}
	return d
}

// Loss bounds the bytes that a crash may take of a Writer's accepted bytes: Write has
// returned nil for them. It is a promise, not a forecast: most crashes take less.
//
// Bytes given to Enqueue are accepted when WaitDurable returns nil. The Loss of a [Policy] is
// per file; see files.Options.Loss for the total of many files.
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
	// Time is the greatest age of a lost byte at the crash, from its acceptance on, or
	// Unlimited. Add the time of the byte's own flush or sync, and of one that was in
	// flight when it was due. If the file takes longer than Time for a write or a sync,
	// add the write in flight, an earlier large Write (see [Writer]), and the syncs
	// before and after it.
	Time time.Duration
	// InFlight says that Bytes bounds the loss at the start of a sync. Add the bytes
	// accepted while that sync runs, and a large Write (see [Writer]). The power bound
	// of a policy that syncs by bytes is of this kind: Bytes is Sync.Bytes + 2×Buffer,
	// and while a Writer's sync runs, it accepts at most Bytes more, and a block or a
	// large Write. With a FlushEvery that addition has no limit, because flushes by time
	// do not wait for the sync.
	InFlight bool
}

// None reports whether nothing is lost.
func (b Bound) None() bool { return b == Bound{} }

// Limited reports whether the bound limits the loss by bytes or by time.
func (b Bound) Limited() bool { return b.Bytes != Unlimited || b.Time != Unlimited }

// Loss returns the bounds that p promises for one file while the file accepts writes
// and syncs; see files.Options.Loss for several files.
func (p Policy) Loss() Loss {
	return Loss{Process: p.processLoss(), Power: p.powerLoss()}
}

func (p Policy) processLoss() Bound {
	if p.Buffer == 0 || p.Sync.Waits() {
		return Bound{}
	}
	return Bound{Bytes: 2 * p.Buffer, Time: cmp.Or(p.Due().Flush, Unlimited)}
}

func (p Policy) powerLoss() Bound {
	switch {
	case p.Sync.Waits():
		return Bound{}
	case p.Sync.Bytes > 0:
		return Bound{Bytes: p.Sync.Bytes + 2*p.Buffer, Time: cmp.Or(p.Sync.Every, Unlimited), InFlight: true}
	}
	return Bound{Bytes: Unlimited, Time: cmp.Or(p.Sync.Every, Unlimited)}
}

// String returns the bound in words, for a table's cell.
func (b Bound) String() string {
	switch {
	case b.None():
		return "nothing"
	case !b.Limited():
		return "anything not synced"
	case b.InFlight && b.Time == Unlimited:
		return fmt.Sprintf("up to %v + what is in flight", b.Bytes)
	case b.InFlight:
		return fmt.Sprintf("the last %v, up to %v, + what is in flight", b.Time, b.Bytes)
	case b.Time == Unlimited:
		return fmt.Sprintf("up to %v", b.Bytes)
	case b.Bytes == Unlimited:
		return fmt.Sprintf("the last %v + one sync", b.Time)
	default:
		return fmt.Sprintf("the last %v + one flush, up to %v", b.Time, b.Bytes)
	}
}
