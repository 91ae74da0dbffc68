package fsync

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pgArm returns the arm of one method of pg_test_fsync, or nil without it.
func pgArm(tools []tool, method string) *arm {
	path := pathOf(tools, "pg_test_fsync")
	if path == "" {
		return nil
	}
	try := func(ctx context.Context, s *site) (sample, error) {
		return s.inDir(func(dir string) (sample, error) { return runPg(ctx, s, path, dir, method) })
	}
	return &arm{Name: "pg_test_fsync", Note: method + ", one 8 kB write", Do: try}
}

// runPg starts pg_test_fsync and ends it as soon as it has reported the method: nothing needs
// its later measurements. It removes its file at a SIGTERM.
func runPg(ctx context.Context, s *site, path, dir, method string) (sample, error) {
	ctx, stop := s.patience(ctx)
	defer stop()
	seconds := int(math.Ceil(s.length.Seconds()))
	cmd := start(ctx, path, "-s", strconv.Itoa(seconds), "-f", filepath.Join(dir, "data"))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return sample{}, err
	}
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	taken, err := parsePg(out, method)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	ended := cmd.Wait() // by our signal, as a rule
	if err != nil {
		return sample{}, toolError(path, errors.Join(ctx.Err(), err, ended), said.String())
	}
	return taken, nil
}

// pgHead begins the part of the output that has a line for each method with one
// write.
const pgHead = "Compare file sync methods using one 8kB write:"

// parsePg reads until the line of a method, such as
//
//	fdatasync                          3104.392 ops/sec     322 usecs/op
func parsePg(out io.Reader, method string) (sample, error) {
	inPart := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case lines.Text() == pgHead:
			inPart = true
		case inPart && lines.Text() == "":
			return sample{}, fmt.Errorf("it does not report %s", method)
		case inPart && len(words) > 0 && words[0] == method:
			return parsePgLine(words)
		}
	}
	return sample{}, fmt.Errorf("it ended before %s", method)
}

func parsePgLine(words []string) (sample, error) {
	if len(words) != 5 || words[2] != "ops/sec" {
		return sample{}, fmt.Errorf("it has no figure, but %q", strings.Join(words, " "))
	}
	rate, err := strconv.ParseFloat(words[1], 64)
	if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
		return sample{}, fmt.Errorf("%q is no rate", words[1])
	}
	// It reports the rate alone, with more digits than the time of one.
	const operations = 1000
	return sample{Units: operations, Elapsed: time.Duration(operations / rate * float64(time.Second))}, nil
}
