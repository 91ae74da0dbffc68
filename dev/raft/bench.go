package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

// A bench measures clusters over each store, one after the other, in rounds.
type bench struct {
	time         time.Duration
	rounds, size int
	behind       int
}

// again is the first store a second time, which shows the noise.
const again = "holdfast, again"

// clients are how many wait for commands at once.
var clients = []int{1, 16, 64}

// A measured holds one store's figures of a round.
type measured struct {
	load   []figure // by clients
	behind float64  // s until a follower was level
}

func (b bench) run(ctx context.Context, dir string, out io.Writer) error {
	arms := append(slices.Clone(stores), again)
	rounds := map[string][]measured{}
	for round := range b.rounds {
		for _, i := range rand.Perm(len(arms)) {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, b.rounds, arms[i])
			m, err := b.measure(ctx, dir, arms[i])
			if err != nil {
				return fmt.Errorf("%s: %w", arms[i], err)
			}
			rounds[arms[i]] = append(rounds[arms[i]], m)
		}
	}
	fmt.Fprintf(out, "Three processes of hashicorp/raft, commands of %d bytes, %d rounds of %v; load %s\n\n", b.size, b.rounds, b.time, loadAverage())
	fmt.Fprintln(out, "| clients | store | commands a second | of holdfast | p50 ms | p99 ms | p99.9 ms | longest ms |\n|--:|---|--:|--:|--:|--:|--:|--:|")
	for i, n := range clients {
		of := func(name string, value func(figure) float64) (all []float64) {
			for _, m := range rounds[name] {
				all = append(all, value(m.load[i]))
			}
			return all
		}
		rate := func(f figure) float64 { return f.Rate }
		for _, name := range arms {
			fmt.Fprintf(out, "| %d | %s | %.0f | %s | %.2f | %.2f | %.1f | %.0f |\n", n, name, median(of(name, rate)), ratio(of(name, rate), of(stores[0], rate)),
				median(of(name, func(f figure) float64 { return f.P50 })), median(of(name, func(f figure) float64 { return f.P99 })),
				median(of(name, func(f figure) float64 { return f.P999 })), slices.Max(of(name, func(f figure) float64 { return f.Most })))
		}
	}
	fmt.Fprintf(out, "\n| a follower %d entries behind | level after s | of holdfast |\n|---|--:|--:|\n", b.behind)
	behind := func(name string) (all []float64) {
		for _, m := range rounds[name] {
			all = append(all, m.behind)
		}
		return all
	}
	for _, name := range arms {
		fmt.Fprintf(out, "| %s | %.2f | %s |\n", name, median(behind(name)), ratio(behind(name), behind(stores[0])))
	}
	return nil
}

func (b bench) measure(ctx context.Context, dir, arm string) (m measured, err error) {
	if dir, err = os.MkdirTemp(dir, "raft-bench-"); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := newCluster(ctx, dir, strings.TrimSuffix(arm, ", again"))
	if err != nil {
		return m, err
	}
	defer c.end()
	c.snapshots, c.trailing = 8192, 10240 // raft's defaults
	for i := range size {
		if err := c.start(i); err != nil {
			return m, err
		}
	}
	for _, n := range clients {
		leader, err := c.leader()
		if err != nil {
			return m, err
		}
		answer, err := c.ask(leader, "bench", n, b.size, b.time.Milliseconds())
		var f figure
		if err == nil {
			err = json.Unmarshal([]byte(answer), &f)
		}
		if err == nil && f.Rate == 0 {
			err = errors.New("no command was applied")
		}
		if err != nil {
			return m, err
		}
		m.load = append(m.load, f)
	}
	if b.behind > 0 {
		took, err := c.catchUp(b.behind, b.size)
		if err != nil {
			return m, err
		}
		m.behind = took.Seconds()
	}
	v, err := c.judge()
	if err == nil && len(v.faults) > 0 {
		err = errors.New(strings.Join(v.faults, "\n"))
	}
	return m, err
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// ratio says the median and the range of the ratios of the same rounds.
func ratio(a, b []float64) string {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(all), slices.Min(all), slices.Max(all))
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
