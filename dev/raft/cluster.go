package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// size is the number of a cluster's processes.
const size = 3

// patience is how long an answer may take on a busy machine.
const patience = time.Minute

// A cluster is three processes and the entries they have acknowledged.
type cluster struct {
	ctx   context.Context
	dir   string
	store string
	peers string
	nodes [size]*process
	lives int

	// Snapshots are taken after this number of entries, and leave this number.
	snapshots, trailing int
	segment             int // bytes of a segment; 0 is the store's default

	mu    sync.Mutex
	acked map[uint32][]bool // of each life, by the commands' numbers
}

// A process is a life of a node.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string // closed at its end
	errors  *os.File
}

// newCluster chooses addresses. It starts no process.
func newCluster(ctx context.Context, dir, store string) (*cluster, error) {
	c := &cluster{ctx: ctx, dir: dir, store: store, snapshots: 300, trailing: 100, acked: map[uint32][]bool{}}
	var addresses []string
	for i := range size {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
		if err := os.MkdirAll(nodeDir(dir, i), 0o777); err != nil {
			return nil, err
		}
	}
	c.peers = strings.Join(addresses, ",")
	return c, nil
}

// start starts a node that does not run.
func (c *cluster) start(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.lives++
	life := uint32(c.lives)
	p := &process{answers: make(chan string, 16)}
	p.cmd = exec.CommandContext(c.ctx, self, nodeWord, "-dir", nodeDir(c.dir, i), "-store", c.store, "-me", strconv.Itoa(i), "-peers", c.peers,
		"-life", fmt.Sprint(life), "-trailing", strconv.Itoa(c.trailing), "-snapshots", strconv.Itoa(c.snapshots), "-segment", strconv.Itoa(c.segment))
	if p.errors, err = os.OpenFile(c.errorsOf(i), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666); err != nil {
		return err
	}
	p.cmd.Stderr = p.errors
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	c.nodes[i] = p
	go func() {
		defer close(p.answers)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if !c.note(life, lines.Text()) {
				p.answers <- lines.Text()
			}
		}
	}()
	_, err = c.answer(i)
	return err
}

// note takes a line that acknowledges commands.
func (c *cluster) note(life uint32, line string) bool {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "ack" && words[0] != "acks" {
		return false
	}
	from, err := strconv.Atoi(words[1])
	to, err2 := strconv.Atoi(words[len(words)-1])
	if err != nil || err2 != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.acked[life]
	if to >= len(all) {
		all = append(all, make([]bool, to+1-len(all))...)
	}
	for n := from; n <= to; n++ {
		all[n] = true
	}
	c.acked[life] = all
	return true
}

func (c *cluster) errorsOf(i int) string { return filepath.Join(c.dir, fmt.Sprint("errors", i)) }

// ask gives a node an order, and returns its answer.
func (c *cluster) ask(i int, order ...any) (string, error) {
	if _, err := fmt.Fprintln(c.nodes[i].in, order...); err != nil {
		return "", c.blame(i, err)
	}
	return c.answer(i)
}

func (c *cluster) answer(i int) (string, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case answer, ok := <-c.nodes[i].answers:
		if why, failed := strings.CutPrefix(answer, "error: "); failed {
			return "", c.blame(i, errors.New(why))
		}
		if !ok {
			return "", c.blame(i, errors.New("the process has ended"))
		}
		return answer, nil
	case <-late.C:
		return "", c.blame(i, fmt.Errorf("no answer in %v", patience))
	}
}

// blame adds the last words of a node to an error.
func (c *cluster) blame(i int, err error) error {
	text, _ := os.ReadFile(c.errorsOf(i))
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return fmt.Errorf("node %d: %w; its last words:\n%s", i, err, bytes.Join(lines[max(0, len(lines)-8):], []byte("\n")))
}

// kill ends a node without its knowledge.
func (c *cluster) kill(i int) {
	_ = c.nodes[i].cmd.Process.Kill()
	c.await(i)
}

// stop ends a node cleanly.
func (c *cluster) stop(i int) error {
	_, err := c.ask(i, "stop")
	if ended := c.await(i); err == nil && ended != nil {
		err = c.blame(i, ended)
	}
	return err
}

// await returns when a process has ended and its acknowledgements are noted.
func (c *cluster) await(i int) error {
	p := c.nodes[i]
	for range p.answers {
	}
	p.in.Close()
	err := p.cmd.Wait()
	p.errors.Close()
	c.nodes[i] = nil
	return err
}

// end kills what runs.
func (c *cluster) end() {
	for i, p := range c.nodes {
		if p != nil {
			c.kill(i)
		}
	}
}

// leader returns the node that leads, when there is one.
func (c *cluster) leader() (int, error) {
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(20 * time.Millisecond) {
		for i, p := range c.nodes {
			if p == nil {
				continue
			}
			leads, err := c.ask(i, "leads")
			if err != nil {
				return 0, err
			}
			if leads == "true" {
				return i, nil
			}
		}
	}
	return 0, c.blame(0, fmt.Errorf("there is no leader after %v", patience))
}

// level waits until all nodes that run have applied what the leader has.
func (c *cluster) level() error {
	last := 0
	for begin := time.Now(); last == 0; time.Sleep(20 * time.Millisecond) {
		leader, err := c.leader()
		if err != nil {
			return err
		}
		answer, err := c.ask(leader, "barrier")
		if err == nil {
			last, err = strconv.Atoi(answer)
		}
		if err != nil && time.Since(begin) > patience { // else another may lead now
			return err
		}
	}
	for i, p := range c.nodes {
		if p != nil {
			if err := c.applies(i, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// applies waits until a node has applied an entry. It gives up when the node has applied none for
// a while.
func (c *cluster) applies(i, index int) error {
	most, moved := -1, time.Now()
	for time.Since(moved) < patience {
		answer, err := c.ask(i, "applied")
		if err != nil {
			return err
		}
		applied, err := strconv.Atoi(answer)
		if err != nil {
			return err
		}
		if applied >= index {
			return nil
		}
		if applied > most {
			most, moved = applied, time.Now()
		}
		time.Sleep(5 * time.Millisecond)
	}
	return c.blame(i, fmt.Errorf("it has applied %d of %d entries, and no more in %v", most, index, patience))
}

// A verdict counts the acknowledged entries that the nodes have.
type verdict struct {
	acknowledged, applied int
	faults                []string
}

// judge compares each node's applied entries with the acknowledged ones.
func (c *cluster) judge() (v verdict, err error) {
	if err := c.level(); err != nil {
		return v, err
	}
	c.mu.Lock()
	acked := c.acked
	c.mu.Unlock()
	var first counts
	for i := range c.nodes {
		path := filepath.Join(c.dir, "counts")
		if _, err := c.ask(i, "counts", path); err != nil {
			return v, err
		}
		f, err := os.Open(path)
		if err != nil {
			return v, err
		}
		var is counts
		if err := errors.Join(gob.NewDecoder(f).Decode(&is), f.Close()); err != nil {
			return v, err
		}
		fault := func(format string, args ...any) {
			v.faults = append(v.faults, fmt.Sprintf("node %d: ", i)+fmt.Sprintf(format, args...))
		}
		missing, applied := 0, 0
		v.acknowledged = 0
		for life, numbers := range acked {
			for n, yes := range numbers {
				of := is.Applied[life]
				if yes {
					v.acknowledged++
					if n >= len(of) || of[n] == 0 {
						missing++
					}
				}
			}
		}
		twice, different := 0, 0
		for life, of := range is.Applied {
			for n, times := range of {
				if times > 0 {
					applied++
				}
				if times > 1 {
					twice++
				}
				if theirs := first.Applied[life]; i > 0 && (n >= len(theirs) || theirs[n] != times) && times > 0 {
					different++
				}
			}
		}
		switch {
		case i == 0:
			first, v.applied = is, applied
		case different > 0 || applied != v.applied:
			fault("it has applied %d commands, and node 0 %d; %d differ", applied, v.applied, different)
		}
		if missing > 0 {
			fault("%d of %d acknowledged commands are missing", missing, v.acknowledged)
		}
		if twice > 0 {
			fault("%d commands were applied more than once", twice)
		}
		if is.Wrong > 0 {
			fault("the data of %d commands is wrong", is.Wrong)
		}
		text, err := os.ReadFile(c.errorsOf(i))
		if err != nil {
			return v, err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "log not found") { // a snapshot has it
				continue
			}
			for _, bad := range []string{"failed to commit logs", "failed to append to logs", "failed to get log", "log compaction failed", "panic:"} {
				if strings.Contains(line, bad) {
					fault("%s", strings.TrimSpace(line))
				}
			}
		}
	}
	return v, nil
}
