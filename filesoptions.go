package holdfast

import (
	"io/fs"
	"time"
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

	// Memory is the most bytes that wait in memory, over all files; 0 is 64 MiB.
	Memory Size

	// Folders lets missing folders be made, with permissions 0777 before umask.
	Folders bool

	// Perm is what new files may be used for, before umask; 0 is 0666.
	Perm fs.FileMode

	// Retry says how often what may pass is tried again.
	Retry Retry
}

// Retry says how often, and after which pauses, a call is made again that failed
// for a reason which may pass, such as a full disk. The pause before the nth retry
// is Base doubled n-1 times, never more than Cap, of which a random part, up to a
// half, is left out.
type Retry struct {
	Attempts int           // how often a call is made in all; 0 is 4, 1 makes no retry
	Base     time.Duration // the first pause; 0 is 100 ms
	Cap      time.Duration // the longest pause; 0 is 1 s
}
