package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// A fault is something that goes wrong while files are written. Each peer meets it
// in a process of its own.
type fault struct {
	name  string
	title string
	asks  string // the question, for the reader of the table
	// items are the peers' writes, in order, unwritable ones included.
	items func(dir string) []item
	// bad are the paths that nobody can write.
	bad func(dir string) []string
	// lay makes the state of the directory in which the peer starts.
	lay         func(dir string) error
	descriptors uint64 // the limit, if it is not 0
	asNobody    bool
	full        bool // the disk is full for a while
	anew        bool // the files exist already
	// act writes the items; nil writes them once.
	act func(p *peer, items []item) (errs []error, err error)
	// want is the files' expected content where it differs from the items.
	want func(dir string) []item
}

// An item is one file with its content.
type item struct {
	path string
	data []byte
}

// made returns n items.
func made(n, size int) func(dir string) []item {
	return func(dir string) []item {
		items := make([]item, n)
		for i := range items {
			line := fmt.Appendf(nil, "%09d\n", i)
			items[i] = item{filepath.Join(dir, fmt.Sprintf("%06d", i)), bytes.Repeat(line, max(1, size/len(line)))}
		}
		return items
	}
}

// faults is all that goes wrong.
func faults() []*fault {
	return []*fault{
		{
			name: "descriptors", title: "5000 files, and the process may open 64 descriptors",
			asks:  "Does it stay below the limit, or tell of each file that it could not write?",
			items: made(5000, 10), descriptors: 64,
		},
		{
			name: "denied", title: "1000 files, one of which is a directory and one in a directory that may not be written to",
			asks:  "What becomes of the other 998? Are both errors told, with their paths?",
			items: withDenied, bad: deniedPaths, lay: layDenied, asNobody: true,
		},
		{
			name: "full", title: "400 files of 64 KiB on a disk of 32 MiB with room for half of them, until 250 ms after the start",
			asks:  "What is lost?",
			items: made(400, 64<<10), full: true,
		},
		{
			name: "truncate", title: "a line through a handle that stays open, then the whole file anew, then a line through the handle",
			asks:  "Does the file hold the new bytes and the last line, or the old ones, or a hole?",
			items: made(100, 10), act: truncate, want: truncated,
		},
		{
			name: "cancel", title: "400 files, cancelled after 200 were handed over; then all of them again",
			asks:  "Is the cancellation told, and can it be used again?",
			items: made(400, 10), act: cancelAndAgain,
		},
		{
			name: "twice", title: "200 files, each given twice in one batch, first with 64 KiB and then with 20 bytes",
			asks:  "Does the later one win? A file that is wrong holds the earlier bytes, or some of both.",
			items: doubled, anew: true, want: made(200, 20),
		},
	}
}

func pickedFaults(pick *regexp.Regexp) (kept []*fault) {
	for _, f := range faults() {
		if len(f.peers(pick)) > 0 {
			kept = append(kept, f)
		}
	}
	return kept
}

func (f *fault) peers(pick *regexp.Regexp) (kept []*peer) {
	for _, p := range peers() {
		meets := p.in == nil || slices.Contains(p.in, f.name)
		if meets && pick.MatchString("faults/"+f.name+"/"+p.name) {
			kept = append(kept, p)
		}
	}
	return kept
}

// The paths of the two that are denied.
const (
	aDir      = 500
	forbidden = "forbidden"
)

func withDenied(dir string) []item {
	items := made(1000, 10)(dir)
	items[700].path = deniedPaths(dir)[1]
	return items
}

func deniedPaths(dir string) []string {
	return []string{filepath.Join(dir, fmt.Sprintf("%06d", aDir)), filepath.Join(dir, forbidden, "file")}
}

func layDenied(dir string) error {
	return errors.Join(os.Mkdir(deniedPaths(dir)[0], 0o777), os.Mkdir(filepath.Join(dir, forbidden), 0o555))
}

func doubled(dir string) (items []item) {
	long := made(200, 64<<10)(dir)
	for i, it := range made(200, 20)(dir) {
		items = append(items, long[i], it)
	}
	return items
}

var lastLine = []byte("the last line\n")

func truncated(dir string) []item {
	items := made(100, 10)(dir)
	for i := range items {
		items[i].data = append(items[i].data, lastLine...)
	}
	return items
}

// truncate keeps a handle for each file while the file is written anew.
func truncate(p *peer, items []item) (errs []error, err error) {
	if p.keep == nil {
		return nil, &unsupported{"keeps no handle"}
	}
	write, err := p.keep(items)
	if err != nil {
		return nil, err
	}
	return write(bytes.Repeat([]byte("an old line, much longer than the new one\n"), 10), lastLine), nil
}

// cancelAndAgain writes the items twice; the first time the context ends in the
// middle.
func cancelAndAgain(p *peer, items []item) (errs []error, err error) {
	if !p.cancels {
		return nil, &unsupported{"knows no context"}
	}
	w, err := p.open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	errs = w.write(ctx, func(yield func(item) bool) {
		for i, it := range items {
			if i == len(items)/2 {
				cancel()
			}
			if !yield(it) {
				return
			}
		}
	})
	errs = append(errs, w.write(context.Background(), inOrder(items))...)
	teller(&errs)(w.close())
	return errs, nil
}

func inOrder(items []item) iter.Seq[item] {
	return func(yield func(item) bool) {
		for _, it := range items {
			if !yield(it) {
				return
			}
		}
	}
}

// An outcome is a peer's report of a fault.
type outcome struct {
	Errors  int      // how many it returned
	Named   []string // the bad paths that its errors name
	First   string   // the first error
	Elapsed time.Duration
	Skipped string // why it has no such thing
}

// underFault is the child's side: the peer meets the fault.
func (t trialOrder) underFault(out io.Writer) (o outcome, err error) {
	f, p := findFault(t.Fault, t.Peer)
	if p == nil {
		return o, fmt.Errorf("faults/%s/%s: there is no such thing", t.Fault, t.Peer)
	}
	if err := f.enter(t.Dir); err != nil {
		return o, err
	}
	items := f.items(".")
	if _, err := out.Write([]byte("\n")); err != nil { // the disk's being full begins to end
		return o, err
	}
	begun := time.Now()
	errs, err := f.meet(p, items)
	o = outcome{Errors: len(errs), Elapsed: time.Since(begun)}
	if skip := (*unsupported)(nil); errors.As(err, &skip) {
		return outcome{Skipped: skip.why}, nil
	}
	if len(errs) > 0 {
		o.First = command.FirstLine(errs[0].Error())
	}
	if f.bad != nil {
		o.Named = named(errs, f.bad("."))
	}
	return o, err
}

// enter puts this process into the directory and takes away what the fault takes. It uses
// relative paths: the directories above may be closed to another user.
func (f *fault) enter(dir string) (err error) {
	if f.asNobody {
		err = errors.Join(os.Chdir(dir), dropRoot("."))
	} else {
		err = os.Chdir(dir)
	}
	if err == nil && f.descriptors > 0 {
		err = limitDescriptors(f.descriptors)
	}
	return err
}

func (f *fault) meet(p *peer, items []item) ([]error, error) {
	if f.act != nil {
		return f.act(p, items)
	}
	if f.anew && p.appends {
		return nil, &unsupported{"only appends"}
	}
	w, err := p.open()
	if err != nil {
		return nil, err
	}
	errs := w.write(context.Background(), inOrder(items))
	teller(&errs)(w.close())
	return errs, nil
}

// named returns the paths that an error names.
func named(errs []error, paths []string) (found []string) {
	text := errors.Join(errs...)
	for _, path := range paths {
		if text != nil && regexp.MustCompile(regexp.QuoteMeta(path)+`\b`).MatchString(text.Error()) {
			found = append(found, path)
		}
	}
	return found
}

func findFault(name, of string) (*fault, *peer) {
	for _, f := range faults() {
		for _, p := range peers() {
			if f.name == name && p.name == of {
				return f, p
			}
		}
	}
	return nil, nil
}

// unsupported says why something can't be had.
type unsupported struct{ why string }

func (u *unsupported) Error() string { return u.why }
func (u *unsupported) Unwrap() error { return errors.ErrUnsupported }
