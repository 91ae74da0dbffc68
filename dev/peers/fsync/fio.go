package fsync

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// fioArm returns the arm of fio with options for its job, or nil without fio.
func fioArm(tools []tool, options []string) *arm {
	path := pathOf(tools, "fio")
	if path == "" {
		return nil
	}
	try := func(ctx context.Context, s *site) (sample, error) {
		return s.inDir(func(dir string) (sample, error) { return runFio(ctx, s, path, dir, options) })
	}
	return &arm{Name: "fio", Note: "`" + strings.Join(options, " ") + "`", Do: try}
}

// fioGrowing writes a new file from its begin; the size is a limit that no disk
// reaches in a trial.
func fioGrowing(size int, sync ...string) []string {
	return append([]string{"--rw=write", fmt.Sprintf("--bs=%d", size), "--size=1g", "--fallocate=none"}, sync...)
}

// fioOverwriting lays a file out and syncs it, then writes the same block of it
// again and again.
func fioOverwriting(sync ...string) []string {
	return append([]string{
		"--rw=randwrite:1000000000", "--rw_sequencer=identical", "--norandommap=1", "--overwrite=1",
		fmt.Sprintf("--bs=%d", blockBytes), fmt.Sprintf("--size=%d", fileBytes), "--io_size=1t", "--fallocate=none",
	}, sync...)
}

func runFio(ctx context.Context, s *site, path, dir string, options []string) (sample, error) {
	ctx, stop := s.patience(ctx)
	defer stop()
	args := []string{
		"--name=beside", "--directory=" + dir, "--filename=data", "--unlink=1", "--ioengine=psync",
		fmt.Sprintf("--runtime=%dms", s.length.Milliseconds()), "--output-format=json",
	}
	cmd := start(ctx, path, append(args, options...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return sample{}, toolError(path, errors.Join(ctx.Err(), err), said.String())
	}
	return parseFio(out.Bytes())
}

// A fioOutput has the fields of fio's JSON that we read.
type fioOutput struct {
	Jobs []struct {
		Error int `json:"error"`
		Write struct {
			Operations int64   `json:"total_ios"`
			Runtime    int64   `json:"runtime"` // in ms
			Latency    fioMean `json:"clat_ns"`
		} `json:"write"`
		Sync struct {
			Latency fioMean `json:"lat_ns"`
		} `json:"sync"`
	} `json:"jobs"`
}

type fioMean struct {
	Mean float64 `json:"mean"`
}

// parseFio reads what fio prints: its JSON, which warnings may precede.
func parseFio(out []byte) (sample, error) {
	begin := bytes.IndexByte(out, '{')
	if begin < 0 {
		return sample{}, fmt.Errorf("fio printed no JSON, but %q", out)
	}
	var f fioOutput
	if err := json.Unmarshal(out[begin:], &f); err != nil {
		return sample{}, fmt.Errorf("fio's JSON: %w", err)
	}
	if len(f.Jobs) != 1 {
		return sample{}, fmt.Errorf("fio reported %d jobs, want 1", len(f.Jobs))
	}
	j := f.Jobs[0]
	if j.Error != 0 {
		return sample{}, fmt.Errorf("fio's job failed with error %d", j.Error)
	}
	if j.Write.Operations <= 0 || j.Write.Runtime <= 0 {
		return sample{}, fmt.Errorf("fio reports %d writes in %d ms", j.Write.Operations, j.Write.Runtime)
	}
	return sample{
		Units:   int(j.Write.Operations),
		Elapsed: time.Duration(j.Write.Runtime) * time.Millisecond,
		Write:   time.Duration(j.Write.Latency.Mean),
		Sync:    time.Duration(j.Sync.Latency.Mean),
	}, nil
}
