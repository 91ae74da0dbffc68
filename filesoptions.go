package holdfast

import (
	"cmp"
	"fmt"
	"io/fs"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// FilesOptions says how a [Files] works. The zero FilesOptions is safe and useful:
// nothing is buffered, nothing is synced, and every other value is the default
// that its field names. It can be read from JSON, from YAML and from a map.
type FilesOptions struct {
	// Policy is that of every file that is appended to, as if each had a Writer of
	// its own. Of whole files its Sync counts: never; each, every file by itself;
	// or close, group and a period, which make a whole file, or all files of a
	// WriteAll together, durable before the call returns.
	Policy Policy

	// Workers is how many goroutines a WriteAll writes with, and how many flush what
	// is due by time; 0 is GOMAXPROCS. A WriteAll that syncs files one by one uses
	// more, because they wait.
	Workers int

	// Handles is the most descriptors that are open at any time, folders included;
	// 0 is a quarter of what the process may open, between 8 and 1024. The least is 4.
	Handles int

	// Memory is the most bytes that wait in memory, over all files; 0 is 64 MiB, or
	// the policy's Buffer if that is more.
	Memory Size

	// Folders lets missing folders be made, with permissions 0777 before umask.
	Folders bool

	// Perm is what new files may be used for, before umask; 0 is 0666. It may hold
	// setuid, setgid and sticky bits, and no other.
	Perm fs.FileMode

	// Retry says how often what may pass is tried again.
	Retry Retry
}

// Retry says how often, and after which pauses, a call is made again that failed
// for a reason which may pass, such as a full disk. The pause before the nth retry
// is Base doubled n-1 times, never more than Cap, of which a random part, up to a
// half, is left out.
//
// Not counted, and made again at once, is a call that a signal interrupted, and one
// that found no descriptor left if an idle one of ours could be closed for it.
type Retry struct {
	Attempts int           // how often a call is made in all; 0 is 4, 1 makes no retry
	Base     time.Duration // the first pause; 0 is 100 ms
	Cap      time.Duration // the longest pause; 0 is 1 s
}

// The defaults of FilesOptions, and what keeps a slip of the unit from taking all
// memory or waiting for days.
const (
	defaultMemory   = 64 * MiB
	defaultPerm     = 0o666
	defaultAttempts = 4
	defaultBase     = 100 * time.Millisecond
	defaultCap      = time.Second

	fewestHandles = 8 // that a default takes
	mostHandles   = 1024

	maxWorkers  = 1 << 16
	maxHandles  = 1 << 24
	maxMemory   = tib
	maxAttempts = 1 << 20
	longestCap  = 24 * time.Hour

	// permBits are those that a file can be made with.
	permBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
)

// Validate returns an error that names the field and the value with which no
// [Files] can work, or nil. It asks and changes nothing.
func (o FilesOptions) Validate() error {
	if err := o.Policy.Validate(); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	switch {
	case o.Workers < 0:
		return fmt.Errorf("files: workers=%d is negative; use 0 for as many as there are processors", o.Workers)
	case o.Workers > maxWorkers:
		return fmt.Errorf("files: workers=%d is more than %d; use 0 for as many as there are processors", o.Workers, maxWorkers)
	case o.Handles < 0:
		return fmt.Errorf("files: handles=%d is negative; use 0 for a quarter of what the process may open", o.Handles)
	case o.Handles != 0 && o.Handles < leastHandles:
		return fmt.Errorf("files: handles=%d is less than %d, which it takes to write one file; use %d or more, or 0 for the default", o.Handles, leastHandles, leastHandles)
	case o.Handles > maxHandles:
		return fmt.Errorf("files: handles=%d is more than %d; use 0 for a quarter of what the process may open", o.Handles, maxHandles)
	case o.Perm&^permBits != 0:
		return fmt.Errorf("files: perm=%#o has bits that no new file can be given; use permissions such as 0644", uint32(o.Perm))
	}
	if err := o.validateMemory(); err != nil {
		return err
	}
	return o.Retry.validate()
}

func (o FilesOptions) validateMemory() error {
	switch {
	case o.Memory < 0:
		return fmt.Errorf("files: memory=%d is negative; use 0 for %v", int64(o.Memory), defaultMemory)
	case o.Memory > maxMemory:
		return fmt.Errorf("files: memory=%v is more than %v; use 0 for %v", o.Memory, maxMemory, defaultMemory)
	case o.Memory != 0 && o.Memory < o.Policy.Buffer:
		return fmt.Errorf("files: memory=%v is less than one buffer of the policy %v; give at least %v", o.Memory, o.Policy, o.Policy.Buffer)
	}
	return nil
}

func (r Retry) validate() error {
	full := r.withDefaults()
	switch {
	case r.Attempts < 0:
		return fmt.Errorf("files: retry.attempts=%d is negative; use 1 for no retry, or 0 for %d", r.Attempts, defaultAttempts)
	case r.Attempts > maxAttempts:
		return fmt.Errorf("files: retry.attempts=%d is more than %d; use a number such as %d", r.Attempts, maxAttempts, defaultAttempts)
	case r.Base < 0:
		return fmt.Errorf("files: retry.base=%v is negative; use 0 for %v", r.Base, defaultBase)
	case r.Cap < 0:
		return fmt.Errorf("files: retry.cap=%v is negative; use 0 for %v", r.Cap, defaultCap)
	case r.Cap > longestCap:
		return fmt.Errorf("files: retry.cap=%v is more than %v; use a pause such as %v", r.Cap, longestCap, defaultCap)
	case full.Base > full.Cap:
		return fmt.Errorf("files: retry.base=%v is more than retry.cap=%v; the cap is the longest pause, so give one that is no shorter than the base", full.Base, full.Cap)
	}
	return nil
}

// withDefaults returns the options with every default filled in.
func (o FilesOptions) withDefaults() FilesOptions {
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	if o.Handles == 0 {
		o.Handles = defaultHandles(sys.DescriptorLimit())
	}
	o.Memory = cmp.Or(o.Memory, max(defaultMemory, o.Policy.Buffer))
	o.Perm = cmp.Or(o.Perm, defaultPerm)
	o.Retry = o.Retry.withDefaults()
	return o
}

// defaultHandles leaves most of the descriptors to the rest of the program.
func defaultHandles(limit int, known bool) int {
	if !known {
		return mostHandles
	}
	return min(max(limit/4, fewestHandles), mostHandles)
}

func (r Retry) withDefaults() Retry {
	r.Attempts = cmp.Or(r.Attempts, defaultAttempts)
	r.Base = cmp.Or(r.Base, defaultBase)
	r.Cap = cmp.Or(r.Cap, defaultCap)
	return r
}

// specialBits are those above the permissions, in their order from 01000.
var specialBits = [...]fs.FileMode{fs.ModeSticky, fs.ModeSetgid, fs.ModeSetuid}

// unixPerm returns permissions as open(2) takes them.
func unixPerm(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for i, special := range specialBits {
		if m&special != 0 {
			bits |= 0o1000 << i
		}
	}
	return bits
}
