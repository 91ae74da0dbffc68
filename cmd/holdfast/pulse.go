package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A pulse tells how far write is: one line that is written over on a terminal, else
// a plain line now and then; and the first failures. It uses no colour.
type pulse struct {
	stderr     io.Writer
	isTerminal bool
	quiet      bool
	files      *holdfast.Files
	begun      time.Time
	end        chan struct{}
	ended      sync.WaitGroup

	mu       sync.Mutex
	seen     totals
	failures int
	wide     int // of the line that stands on the terminal
}

const (
	pulseTerminal = 250 * time.Millisecond
	pulsePlain    = 10 * time.Second
	mostFailures  = 10 // that are told one by one
)

func newPulse(stderr io.Writer, quiet bool, files *holdfast.Files) *pulse {
	return &pulse{stderr: stderr, quiet: quiet, isTerminal: isTerminal(stderr), files: files, begun: time.Now(), end: make(chan struct{})}
}

// start tells of progress from now on, unless it is to be quiet.
func (p *pulse) start() {
	if !p.quiet {
		p.ended.Go(p.beat)
	}
}

func (p *pulse) beat() {
	every := pulsePlain
	if p.isTerminal {
		every = pulseTerminal
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.tell()
		case <-p.end:
			return
		}
	}
}

// see keeps what tell will tell.
func (p *pulse) see(t totals) {
	p.mu.Lock()
	p.seen = t
	p.mu.Unlock()
}

func (p *pulse) tell() {
	handles := p.files.Stats().Open
	p.mu.Lock()
	defer p.mu.Unlock()
	rate := float64(p.seen.Bytes) / time.Since(p.begun).Seconds()
	text := fmt.Sprintf("holdfast: %s, %s/s, %s, %s",
		countText(p.seen.Lines, "line"), bytesText(int64(rate)), countText(int64(p.seen.Files), "file"), countText(int64(handles), "handle"))
	if !p.isTerminal {
		fmt.Fprintln(p.stderr, text)
		return
	}
	fmt.Fprintf(p.stderr, "\r%-*s", p.wide, text)
	p.wide = len(text)
}

// clearLocked takes the line away.
func (p *pulse) clearLocked() {
	if p.wide > 0 {
		fmt.Fprintf(p.stderr, "\r%s\r", strings.Repeat(" ", p.wide))
		p.wide = 0
	}
}

// failure tells one of the first failures.
func (p *pulse) failure(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures++; p.failures > mostFailures {
		return
	}
	p.clearLocked()
	fmt.Fprintf(p.stderr, "holdfast: "+format+"\n", args...)
	if p.failures == mostFailures {
		fmt.Fprintln(p.stderr, "holdfast: further failures are counted")
	}
}

// say tells something that is no failure, unless it is to be quiet.
func (p *pulse) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.quiet {
		p.clearLocked()
		fmt.Fprintf(p.stderr, "holdfast: "+format+"\n", args...)
	}
}

// stop ends the progress, and takes its line away.
func (p *pulse) stop() {
	close(p.end)
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
}

// plainText is an error without the name of the library before it.
func plainText(err error) string {
	return strings.TrimPrefix(err.Error(), "holdfast: ")
}
