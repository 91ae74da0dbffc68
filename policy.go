package holdfast

import (
	"fmt"
	"strings"
	"time"
)

// A Policy says when the bytes of a [Writer] move from its memory to the kernel
// and from there to stable storage. It is one comparable value with one line of
// text, such as
//
//	buffer=64KiB,flush=100ms,sync=1s
//
// so it can be a flag, a line of a configuration file, a map key or the name of
// a benchmark. [Policy.Loss] tells what it promises.
//
// The zero Policy is [Unbuffered]: every Write goes straight to the kernel, and
// nothing is synced. No field's zero stands for a default.
type Policy struct {
	// Buffer is how many bytes gather in memory before they go to the kernel
	// in one write; 0 means that every Write goes straight to the kernel. While
	// one buffer is on its way a second one gathers, so a Writer holds up to
	// twice as many bytes.
	Buffer Size

	// FlushEvery is the longest that a byte waits in memory before it starts
	// on its way to the kernel; 0 means that time alone never flushes.
	FlushEvery time.Duration

	// Sync says when written bytes are made to reach stable storage.
	Sync Sync
}

// A Sync says when a Writer syncs its file: one of the four constants below, or
// a positive duration, which is the longest that an accepted byte waits before
// the sync that covers it starts (or, if one is then in flight, queues right
// behind it).
type Sync time.Duration

const (
	// SyncNever leaves the time to the kernel, unless the caller calls Sync.
	SyncNever Sync = 0
	// SyncClose syncs once, in Close.
	SyncClose Sync = -1
	// SyncGroup lets Write return when its bytes are durable; concurrent Writes
	// share one sync.
	SyncGroup Sync = -2
	// SyncEach lets Write return when its bytes are durable, with a sync of its
	// own.
	SyncEach Sync = -3
)

// syncNames holds the text of the values of Sync that are not durations.
var syncNames = map[Sync]string{
	SyncNever: "never",
	SyncClose: "close",
	SyncGroup: "group",
	SyncEach:  "each",
}

// maxBuffer keeps a slip of the unit (64GiB for 64MiB) from taking all memory.
const maxBuffer = GiB

// Unbuffered hands every Write straight to the kernel and never syncs, as a bare
// os.File does.
func Unbuffered() Policy { return Policy{} }

// Buffered gathers size bytes in memory before it writes them, without any bound
// by time, as bufio.Writer does.
func Buffered(size Size) Policy { return Policy{Buffer: size} }

// Periodic gathers 64 KiB in memory and lets no byte wait longer than every
// before a sync that covers it starts. A period that is not positive gives a
// policy that Validate refuses, not one that syncs at other times.
func Periodic(every time.Duration) Policy {
	if every <= 0 {
		every = min(every, time.Duration(SyncEach)-1)
	}
	return Policy{Buffer: 64 * KiB, Sync: Sync(every)}
}

// Durable lets Write return when its bytes are on stable storage; concurrent
// Writes share one sync (group commit).
func Durable() Policy { return Policy{Buffer: 64 * KiB, Sync: SyncGroup} }

// EachDurable gives every Write a sync of its own: the dearest and simplest way,
// for comparison with [Durable], which promises the same.
func EachDurable() Policy { return Policy{Sync: SyncEach} }

// acknowledgesDurable reports whether Write waits until its bytes are durable.
func (p Policy) acknowledgesDurable() bool {
	return p.Sync == SyncGroup || p.Sync == SyncEach
}

// syncs reports whether the policy ever syncs by itself.
func (p Policy) syncs() bool { return p.Sync != SyncNever }

// Validate returns an error that names the field and the value that no Writer
// can keep, or nil. It does not change p.
func (p Policy) Validate() error {
	switch {
	case p.Buffer < 0:
		return fmt.Errorf("policy: buffer=%d is negative; use 0 to write straight to the kernel", int64(p.Buffer))
	case p.Buffer > maxBuffer:
		return fmt.Errorf("policy: buffer=%v is more than %v; a Writer holds twice its buffer in memory", p.Buffer, maxBuffer)
	case p.FlushEvery < 0:
		return fmt.Errorf("policy: flush=%v is negative; leave it out to flush only when the buffer is full", p.FlushEvery)
	case p.FlushEvery > 0 && p.Buffer == 0:
		return fmt.Errorf("policy: flush=%v has nothing to flush with buffer=0; give a buffer, such as buffer=64KiB, or leave flush out", p.FlushEvery)
	case p.Sync < SyncEach:
		return fmt.Errorf("policy: sync=%v is not a period above 0; use never, close, group, each or a duration such as 1s", time.Duration(p.Sync))
	}
	return nil
}

// String returns the text that [ParsePolicy] turns back into p.
func (p Policy) String() string {
	flush := ""
	if p.FlushEvery != 0 {
		flush = ",flush=" + p.FlushEvery.String()
	}
	return "buffer=" + p.Buffer.String() + flush + ",sync=" + p.Sync.String()
}

// String returns never, close, group, each, or the duration.
func (s Sync) String() string {
	if name, ok := syncNames[s]; ok {
		return name
	}
	return time.Duration(s).String()
}

// ParsePolicy reads a policy's text: fields joined by commas, in any order, each
// at most once; a field that is left out has its zero value (buffer=0, no
// flush by time, sync=never). The policy it returns is valid, and
// ParsePolicy(p.String()) == p for every valid p.
func ParsePolicy(text string) (Policy, error) {
	var p Policy
	if strings.TrimSpace(text) == "" {
		return Policy{}, fmt.Errorf("policy is empty; write it like buffer=64KiB,flush=100ms,sync=1s")
	}
	seen := map[string]bool{}
	for field := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		if !ok {
			return Policy{}, fmt.Errorf("policy %q: field %q has no value; write it like buffer=64KiB,flush=100ms,sync=1s", text, field)
		}
		if seen[key] {
			return Policy{}, fmt.Errorf("policy %q: field %q is given twice", text, key)
		}
		seen[key] = true
		if err := p.set(key, value); err != nil {
			return Policy{}, fmt.Errorf("policy %q: %w", text, err)
		}
	}
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

func (p *Policy) set(key, value string) (err error) {
	switch key {
	case "buffer":
		p.Buffer, err = ParseSize(value)
	case "flush":
		p.FlushEvery, err = parseDuration(value)
	case "sync":
		p.Sync, err = parseSync(value)
	default:
		return fmt.Errorf("unknown field %q; the fields are buffer, flush and sync", key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func parseSync(value string) (Sync, error) {
	for s, name := range syncNames {
		if value == name {
			return s, nil
		}
	}
	d, err := parseDuration(value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not never, close, group, each or a duration such as 1s", value)
	}
	return Sync(d), nil
}

func parseDuration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 100ms or 1s", value)
	}
	if d < 0 {
		return 0, fmt.Errorf("%q is negative; use a duration such as 100ms or 1s", value)
	}
	return d, nil
}

// MarshalText returns the policy's text, or the error of Validate.
func (p Policy) MarshalText() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads what [ParsePolicy] reads; on an error p is unchanged.
func (p *Policy) UnmarshalText(text []byte) error {
	v, err := ParsePolicy(string(text))
	if err == nil {
		*p = v
	}
	return err
}
