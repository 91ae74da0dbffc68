package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/dev/peers/internal/command"
)

// A standing is the result of one peer under one fault.
type standing struct {
	peer    *peer
	right   int // files that hold what they are to hold
	wrong   int
	missing int
	outcome
	fate string // why it did not end by itself, or nothing
}

// meetFaults lets every peer meet every fault once.
func meetFaults(ctx context.Context, pick *regexp.Regexp, root string, stdout, stderr io.Writer) error {
	for _, f := range pickedFaults(pick) {
		var all []standing
		for i, p := range f.peers(pick) {
			if err := ctx.Err(); err != nil {
				return err
			}
			fmt.Fprintf(stderr, "files: faults/%s/%s\n", f.name, p.name)
			s, err := f.run(ctx, filepath.Join(root, fmt.Sprintf("fault-%s-%d", f.name, i)), p)
			if errors.Is(err, errors.ErrUnsupported) {
				s = standing{peer: p, outcome: outcome{Skipped: err.Error()}}
			} else if err != nil {
				return fmt.Errorf("faults/%s/%s: %w", f.name, p.name, err)
			}
			all = append(all, s)
		}
		f.writeTable(stdout, all)
	}
	return nil
}

// run sets the fault, starts the peer in a process of its own, and checks the files it left.
func (f *fault) run(ctx context.Context, dir string, p *peer) (s standing, err error) {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return s, err
	}
	lift := func() error { return nil }
	if f.full {
		var unmount func() error
		if lift, unmount, err = fillDisk(dir); err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, unmount()) }()
	}
	if f.lay != nil {
		if err := f.lay(dir); err != nil {
			return s, err
		}
	}
	s, err = f.watch(ctx, dir, p, lift)
	if err == nil && s.Skipped == "" {
		s.count(f, dir)
	}
	return s, err
}

// How long a peer may take, and how long the disk is full.
const (
	longest = 20 * time.Second
	fullFor = 250 * time.Millisecond
)

// watch runs the peer, lifts the fault, and kills what longest.
func (f *fault) watch(ctx context.Context, dir string, p *peer, lift func() error) (s standing, err error) {
	s.peer = p
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	cmd, err := command.Child(limited, "files", trialOrder{Fault: f.name, Peer: p.name, Dir: dir})
	if err != nil {
		return s, err
	}
	answer, said, err := follow(cmd, lift)
	switch {
	case ctx.Err() != nil:
		return s, ctx.Err()
	case limited.Err() != nil:
		s.fate = fmt.Sprintf("not done after %v: killed", longest)
	case errors.As(err, new(*exec.ExitError)):
		s.fate = fmt.Sprintf("died: %s", command.FirstLine(said))
	case err != nil:
		return s, err
	default:
		return s, json.Unmarshal(answer, &s.outcome)
	}
	return s, nil
}

// follow runs the command; some time after its first line, lift is called.
func follow(cmd *exec.Cmd, lift func() error) (answer []byte, said string, err error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	lines := bufio.NewReader(out)
	_, begun := lines.ReadString('\n')
	lifted := make(chan error, 1)
	timer := time.AfterFunc(fullFor, func() { lifted <- lift() })
	answer, err = io.ReadAll(lines)
	if err = errors.Join(err, cmd.Wait()); err == nil {
		err = begun
	}
	if !timer.Stop() {
		err = errors.Join(err, <-lifted)
	}
	return answer, stderr.String(), err
}

// count looks at the files.
func (s *standing) count(f *fault, dir string) {
	want := f.items
	if f.want != nil {
		want = f.want
	}
	bad := map[string]bool{}
	if f.bad != nil {
		for _, path := range f.bad(dir) {
			bad[path] = true
		}
	}
	for _, it := range want(dir) {
		if bad[it.path] {
			continue
		}
		got, err := os.ReadFile(it.path)
		switch {
		case err != nil:
			s.missing++
		case bytes.Equal(got, it.data):
			s.right++
		default:
			s.wrong++
		}
	}
}

func (f *fault) writeTable(out io.Writer, all []standing) {
	fmt.Fprintf(out, "\n## faults/%s: %s\n\n%s Each peer once, in a process of its own.\n\n", f.name, f.title, f.asks)
	fmt.Fprint(out, "| peer | right | wrong | missing | errors told | ms | what it said first |\n|---|--:|--:|--:|--:|--:|---|\n")
	for _, s := range all {
		fmt.Fprintf(out, "| %s | %s |\n", s.peer.name, strings.Join(s.columns(f), " | "))
	}
	fmt.Fprintln(out)
	for _, s := range all {
		fmt.Fprintf(out, "- `%s`: %s.\n", s.peer.name, s.peer.note)
	}
	fmt.Fprintf(out, "\n%s\n", leftOut)
}

func (s *standing) columns(f *fault) []string {
	if s.Skipped != "" {
		return []string{"–", "–", "–", "–", "–", s.Skipped}
	}
	row := []string{fmt.Sprint(s.right), fmt.Sprint(s.wrong), fmt.Sprint(s.missing)}
	if s.fate != "" {
		return append(row, "–", "–", command.InCell(s.fate))
	}
	reported := fmt.Sprint(s.Errors)
	if f.bad != nil {
		reported += fmt.Sprintf(", %d of %d paths", len(s.Named), len(f.bad("")))
	}
	return append(row, reported, fmt.Sprintf("%.0f", float64(s.Elapsed)/1e6), command.InCell(s.First))
}
