package powercut

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lab/fuselog"
	"github.com/holdfast-go/holdfast/internal/lab/prove"
	"github.com/holdfast-go/holdfast/internal/lab/volume"
)

// workers is how many file systems are worked on at a time: a mount waits more than it computes.
const workers = 16

// A room is the process that makes and mounts everything.
type room struct {
	child func(ctx context.Context, args ...string) *exec.Cmd
	top   string // a tmpfs that only this process and its children see
	order order
	end   time.Time
	mu    sync.Mutex // of out
	out   *json.Encoder
}

// Process is one of the processes that it starts, by the arguments.
func Process(args []string, o prove.Options) error {
	if args[0] == diskArgument && len(args) == 2 {
		notes, err := prove.ShareNotes(args[1])
		if err != nil {
			return err
		}
		return (&fuselog.Disk{Device: 3, Image: 4, Log: 5, Notes: notes.Begun}).Serve()
	}
	if args[0] != roomArgument || len(args) != 1 || os.Getpid() != 1 {
		return errors.New("a room has no arguments, and is the first process of its namespace")
	}
	r := &room{child: o.Child, top: os.TempDir(), out: json.NewEncoder(os.NewFile(4, "answers"))}
	text, err := bufio.NewReader(os.NewFile(3, "orders")).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &r.order)
	}
	if err != nil {
		return err
	}
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	if err := r.run(); err != nil {
		return r.say(&answer{Err: err.Error()})
	}
	return nil
}

func (r *room) say(a *answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Encode(a)
}

// private makes the mounts this process's alone, and an empty directory to work in. The kernel
// ends them with its last process.
func (r *room) private() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("holdfast-power", r.top, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700"); err != nil {
		return fmt.Errorf("mount -t tmpfs: %w", err)
	}
	return nil
}

func (r *room) run() error {
	if err := r.private(); err != nil {
		return err
	}
	if f := r.order.Replay; f != nil {
		v, err := r.replay(f)
		return errors.Join(err, r.say(&answer{Violation: v}))
	}
	cells, err := r.cells()
	if err != nil {
		return err
	}
	r.end = time.Now().Add(time.Duration(r.order.Seconds * float64(time.Second)))
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, min(workers, len(cells)))
	for i := range errs {
		group.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(cells) {
					return
				}
				c := &cells[n]
				share := time.Until(r.end) / time.Duration((len(cells)-n+len(errs)-1)/len(errs))
				c.dir = filepath.Join(r.top, fmt.Sprint("cell", c.seed))
				if err := r.judge(c, time.Now().Add(share)); err != nil {
					errs[i] = fmt.Errorf("%s, %s under %v: %w", c.kind.Name, c.Workload.Name, c.Policy, err)
					next.Store(int64(len(cells)))
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// A cell is what one verdict is about.
type cell struct {
	prove.Cell
	kind volume.Kind
	seed uint64
	dir  string
	liar string // of a control: what the disk does
}

// The disks that must be caught, below a correct program.
const (
	noBarrier   = "disk-no-barrier"
	noFlush     = "disk-ignores-flushes"
	keepsFlush  = 3 // one of so many flushes is not ignored
	liarControl = "lost"
)

// harmlessThere are programs that are no liars where a commit of the journal brings what was
// written before it to the disk too: the sync of the directory syncs the file.
var harmlessThere = []string{"liar-no-sync", "liar-name-first"}

// journalsData reports whether it does. On an ext4 with data=ordered it does not, since that
// allocates late.
func journalsData(k volume.Kind) bool { return k.Type == "ext3" || k.Name == "ext4-journal" }

// cells are those of the order, the controls of all file systems first.
func (r *room) cells() (cells []cell, err error) {
	var o prove.Options
	for _, text := range r.order.Policies {
		p, err := holdfast.ParsePolicy(text)
		if err != nil {
			return nil, err
		}
		o.Policies = append(o.Policies, p)
	}
	for _, name := range r.order.Workloads {
		o.Workloads = append(o.Workloads, prove.Find(name))
	}
	for _, name := range r.order.Kinds {
		k, err := kindOf(name)
		if err != nil {
			return nil, err
		}
		for _, c := range o.Cells(prove.PowerCut) {
			if journalsData(k) && slices.Contains(harmlessThere, c.Workload.Name) {
				continue
			}
			cells = append(cells, cell{Cell: c, kind: k})
			if c.Workload.Control != "correct" {
				continue
			}
			liars := []string{noFlush}
			if k.Type == "ext4" || k.Type == "ext3" || k.Type == "btrfs" {
				liars = append(liars, noBarrier)
			}
			for _, liar := range liars {
				cells = append(cells, cell{Cell: c, kind: k, liar: liar})
			}
		}
	}
	slices.SortStableFunc(cells, func(a, b cell) int { return min(1, len(b.Workload.Control)) - min(1, len(a.Workload.Control)) })
	for i := range cells {
		cells[i].seed = r.order.Seed + uint64(i)
	}
	return cells, nil
}
