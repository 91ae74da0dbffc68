package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/durable"
	"github.com/holdfast-go/holdfast/internal/handles"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/sys"
)

// Options says how a [Set] works. The zero Options is safe and useful:
// nothing is buffered, nothing is synced, and every other value is the default
// that its field names. It can be read from JSON and from YAML.
type Options struct {
	// Policy holds for every file that is appended to, as if each had a Writer of
	// its own. So Policy.Loss is for one path, and Loss sums it up. Only a sync by
	// bytes counts the bytes of all paths together. Whole files use only its Sync: never
	// syncs none, and each syncs every file by itself. All others make a whole file, or all
	// files of a WriteAll together, durable before the call returns.
	Policy holdfast.Policy

	// Workers is the number of goroutines that a WriteAll writes with, and that flush what
	// is due by time; 0 is GOMAXPROCS. With 1 the caller's writes each file before it asks
	// for the next. A WriteAll that syncs files one by one uses more, because they wait.
	Workers int

	// Handles is the most descriptors that are open at any time, directories included.
	// 0 is a quarter of the process's limit, between 8 and 4096. The least is 4.
	Handles int

	// Memory is the most bytes that wait in memory, over all files. So it is the most
	// that the end of the process loses; 0 is 64 MiB, or the policy's Buffer if that is more.
	// Bytes that can't be written stay there, and their path takes no more. If such paths hold all of it,
	// other paths have no buffer, and each Append writes its data. Set.Discard gives their memory back.
	Memory holdfast.Size

	// MkdirAll lets missing directories be made, with permissions 0777 before umask. If the policy syncs, a
	// directory's name is durable before a file in it is. That holds for directories that were found too, which a
	// killed process may have made: each takes one more sync, once in a Set. A failed sync of the directory
	// above may have lost such a name, and no later sync tells. So a directory that a Set finds after that failure
	// is refused until the process ends. Directories that the Set knew before, or makes after it, are not.
	MkdirAll bool

	// Perm is the permissions of new files, before umask; 0 is 0666. It may hold
	// setuid, setgid and sticky bits, and no other. An Append by an ordinary user clears setuid, as
	// each write does.
	Perm fs.FileMode

	// Lines says that what Append gets is whole lines. If a file does not end with a line feed,
	// Append ends its torn line with one before it adds anything. Stats counts these as
	// Healed. Append looks each time it opens a file, and after a write past the buffer that
	// failed in part: then give the whole line again. The files must be readable too. A line
	// that another program is in the middle of counts as torn.
	Lines bool

	// Effort says what happens where the file system refuses what a call needs beside writing bytes.
	// With [holdfast.Strict] that is an error. With [holdfast.Best] a call goes on:
	//   - Replace leaves out permissions and attributes that a mount does not let it set
	//     ([Result].Stripped);
	//   - a name whose directory the file system does not sync is not durable, and no error
	//     ([Result].NameUnsynced);
	//   - Replace of a file that is a mount point, such as a container's single file, writes
	//     in place what it can't rename ([Result].InPlace). A crash meanwhile may leave the file torn, and
	//     beside it the whole new one, named NAME.holdfast-new.
	Effort holdfast.Effort

	// Root has every path lead to a file in this directory: no "..", and no symbolic link that
	// another program plants there, leads out of it ([os.Root]). Paths are relative to it. It must stay
	// open until Close has returned. On systems other than Linux it needs a program that is built with Go 1.25
	// or newer. It is no key of JSON or YAML.
	Root *os.Root

	// Retry bounds the retries of failures that may pass.
	Retry Retry

	// Batch is the most files that a WriteAll makes durable in one step; 0 is 4096. Policies that
	// sync each file by itself do not use it.
	Batch int

	// Logger gets events that no error reports; Stats only counts them. At level Debug it gets each
	// descriptor that is opened to be kept ("open") or closed to make room ("evict"). It
	// also gets each durable step of a WriteAll ("batch"). At level Warn it gets each
	// pause before a retry ("retry") and each torn line that was ended ("heal"). Nil logs
	// nothing. It must not write through the same Set, and is no key of JSON or YAML.
	Logger *slog.Logger
}

// Retry bounds the retries of a call that failed for a reason which may pass, such as
// a full disk. The pause before the nth retry
// is Base doubled n-1 times, and at most Cap. A random part of it, up to a half, is
// left out.
//
// A call that a signal interrupted is made again at once, and not counted. So is one
// that found no descriptor left, if an idle one of ours could be closed for it.
type Retry struct {
	Attempts int           // how often a call is made in all; 0 is 4, 1 makes no retry
	Base     time.Duration // the first pause; 0 is 100 ms
	Cap      time.Duration // the longest pause; 0 is 1 s
}

// The defaults of Options, and the limits that keep a slip of the unit from taking all memory or
// waiting for days.
const (
	defaultMemory = 64 * holdfast.MiB
	defaultPerm   = 0o666

	fewestHandles = 8 // that a default takes
	mostHandles   = 4096

	maxWorkers  = 1 << 16
	maxBatch    = 1 << 20
	maxHandles  = 1 << 24
	maxMemory   = holdfast.Size(1 << 40)
	maxAttempts = 1 << 20
	longestCap  = 24 * time.Hour

	// permBits are the bits that a file can be made with.
	permBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
)

// Validate returns an error that names the field and the value with which no
// [Set] can work, or nil. It asks and changes nothing.
func (o Options) Validate() error {
	if err := o.Policy.Validate(); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	if err := o.Effort.Validate(); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	switch {
	case o.Root != nil && whyNoRoot != "":
		return fmt.Errorf("files: a Root can't be kept on %s %s, or use paths", runtime.GOOS, whyNoRoot)
	case o.Workers < 0:
		return fmt.Errorf("files: workers=%d is negative; use 0 for as many as there are processors", o.Workers)
	case o.Workers > maxWorkers:
		return fmt.Errorf("files: workers=%d is more than %d; use 0 for as many as there are processors", o.Workers, maxWorkers)
	case o.Handles < 0:
		return fmt.Errorf("files: handles=%d is negative; use 0 for a quarter of what the process may open", o.Handles)
	case o.Handles != 0 && o.Handles < handles.LeastHandles:
		return fmt.Errorf("files: handles=%d is less than %d, which it takes to write one file; use %d or more, or 0 for the default", o.Handles, handles.LeastHandles, handles.LeastHandles)
	case o.Handles > maxHandles:
		return fmt.Errorf("files: handles=%d is more than %d; use 0 for a quarter of what the process may open", o.Handles, maxHandles)
	case o.Perm&^permBits != 0:
		return fmt.Errorf("files: perm=%#o has bits that no new file can be given; use permissions such as 0644", uint32(o.Perm))
	case o.Memory < 0:
		return fmt.Errorf("files: memory=%d is negative; use 0 for %v", int64(o.Memory), defaultMemory)
	case o.Memory > maxMemory:
		return fmt.Errorf("files: memory=%v is more than %v; use 0 for %v", o.Memory, maxMemory, defaultMemory)
	case o.Batch < 0:
		return fmt.Errorf("files: batch=%d is negative; use 0 for %d files", o.Batch, durable.MostPerStep)
	case o.Batch > maxBatch:
		return fmt.Errorf("files: batch=%d is more than %d; use 0 for %d files", o.Batch, maxBatch, durable.MostPerStep)
	case o.Memory != 0 && o.Memory < o.Policy.Buffer:
		return fmt.Errorf("files: memory=%v is less than one buffer of the policy %v; give at least %v", o.Memory, o.Policy, o.Policy.Buffer)
	}
	return o.Retry.validate()
}

func (r Retry) validate() error {
	full := r.withDefaults()
	switch {
	case r.Attempts < 0:
		return fmt.Errorf("files: retry.attempts=%d is negative; use 1 for no retry, or 0 for %d", r.Attempts, retry.DefaultAttempts)
	case r.Attempts > maxAttempts:
		return fmt.Errorf("files: retry.attempts=%d is more than %d; use a number such as %d", r.Attempts, maxAttempts, retry.DefaultAttempts)
	case r.Base < 0:
		return fmt.Errorf("files: retry.base=%v is negative; use 0 for %v", r.Base, retry.DefaultBase)
	case r.Cap < 0:
		return fmt.Errorf("files: retry.cap=%v is negative; use 0 for %v", r.Cap, retry.DefaultCap)
	case r.Cap > longestCap:
		return fmt.Errorf("files: retry.cap=%v is more than %v; use a pause such as %v", r.Cap, longestCap, retry.DefaultCap)
	case full.Base > full.Cap:
		return fmt.Errorf("files: retry.base=%v is more than retry.cap=%v; the cap is the longest pause, so give one that is no shorter than the base", full.Base, full.Cap)
	}
	return nil
}

// WithDefaults returns the options with every default filled in.
func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	if o.Handles == 0 {
		o.Handles = defaultHandles(sys.DescriptorLimit())
	}
	o.Memory = o.memory()
	o.Perm = cmp.Or(o.Perm, defaultPerm)
	o.Batch = cmp.Or(o.Batch, durable.MostPerStep)
	o.Retry = o.Retry.withDefaults()
	return o
}

func (o Options) memory() holdfast.Size {
	return cmp.Or(o.Memory, max(defaultMemory, o.Policy.Buffer))
}

// defaultHandles leaves most of the descriptors to the rest of the program.
func defaultHandles(limit int, known bool) int {
	if !known {
		return mostHandles
	}
	return min(max(limit/4, fewestHandles), mostHandles)
}

func (r Retry) withDefaults() Retry { return Retry(retry.Limits(r).WithDefaults()) }

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

// A Mode says what [Set.WriteFile] does with the file that may be there already.
type Mode int

const (
	// Create makes a new file, and fails if there is one (fs.ErrExist). It is
	// the zero Mode: no file is ever lost by it.
	Create Mode = iota
	// Truncate empties the file first. A crash in between leaves it empty or short.
	Truncate
	// Append writes at the file's end.
	Append
	// Replace writes a temporary file in the same directory and renames it. At every
	// moment, and after a crash if the policy syncs, the path names the old file whole or
	// the new one whole. After an error the temporary file is gone, or the error names it.
	// Permissions, the access control list, extended attributes and, where the system lets
	// us, owner and group stay; see [Result].Stripped for the others. Nobody can read
	// the new file who could not read the old one, at any moment. Capabilities of the old
	// file are dropped, as by any write. A symbolic link stays, and its target is replaced. Other
	// hard links keep the old file.
	Replace
)

var modeNames = [...]string{Create: "create", Truncate: "truncate", Append: "append", Replace: "replace"}

// String returns create, truncate, append or replace.
func (m Mode) String() string {
	if m < 0 || int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", int(m))
	}
	return modeNames[m]
}

// Validate returns an error for a Mode that is none of the four.
func (m Mode) Validate() error {
	if m < 0 || int(m) >= len(modeNames) {
		return fmt.Errorf("mode %d is none; use create, truncate, append or replace", int(m))
	}
	return nil
}

// MarshalText returns the mode's name.
func (m Mode) MarshalText() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads the mode's name; on an error m is unchanged.
func (m *Mode) UnmarshalText(text []byte) error {
	for mode, name := range modeNames {
		if name == string(text) {
			*m = Mode(mode)
			return nil
		}
	}
	return fmt.Errorf("%q is not create, truncate, append or replace", text)
}
