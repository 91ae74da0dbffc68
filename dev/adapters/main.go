//go:build unix

// Command bench measures pipelines of loggers with holdfast below them beside what their users have
// now: zap's BufferedWriteSyncer, a bufio.Writer and a mutex, lumberjack. It prints a table in
// Markdown. It has the time and the CPU time of a record in each, as medians over rounds that run
// them all. Beside them is the ratio to the logger's first arm in the same round.
//
//	go run -C adapters/bench . --dir /var/tmp
package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"
)

// size is the buffer of every arm that has one: zap's default.
const size = 256 << 10

// policy promises more than the others do: at most the last second is lost at a power cut.
var policy = holdfast.Policy{Buffer: size, Sync: holdfast.SyncEvery(time.Second)}

// A sink is below a logger. The arms have zap's interface in common.
type sink interface {
	zapcore.WriteSyncer
	io.Closer
}

// sinks are by name; a logger's ratios are against its first sink.
var sinks = map[string]func(path string) (sink, error){
	"BufferedWriteSyncer": func(path string) (sink, error) {
		f, err := os.Create(path)
		return &syncer{&zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(struct{ io.Writer }{f}), Size: size}, f}, err
	},
	"bufio+mutex": func(path string) (sink, error) {
		f, err := os.Create(path)
		return &locked{w: bufio.NewWriterSize(f, size), file: f}, err
	},
	"lumberjack": func(path string) (sink, error) {
		return lumber{&lumberjack.Logger{Filename: path, MaxSize: 1 << 20}}, nil
	},
	"holdfast.Writer": func(path string) (sink, error) { return holdfast.Create(path, policy) },
	nothing:           func(string) (sink, error) { return discard{}, nil },
	"the same without sync": func(path string) (sink, error) {
		return holdfast.Create(path, holdfast.Buffered(size))
	},
	"rotate": func(path string) (sink, error) {
		return rotate.Open(path, rotate.Options{Policy: policy, MaxSize: holdfast.Size(1 << 40)})
	},
}

// syncer is zap's own. Its Stop syncs, which AddSync has made to do nothing: no other syncs.
type syncer struct {
	*zapcore.BufferedWriteSyncer
	file *os.File
}

func (s *syncer) Close() error { return errors.Join(s.Stop(), s.file.Close()) }

// locked is the mutex that people put around a bufio.Writer.
type locked struct {
	mu   sync.Mutex
	w    *bufio.Writer
	file *os.File
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
func (l *locked) Sync() error  { return nil }
func (l *locked) Close() error { return errors.Join(l.w.Flush(), l.file.Close()) }

// nothing is no sink at all: what the logger itself takes, and so the limit of every sink.
const nothing = "nothing"

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Sync() error                 { return nil }
func (discard) Close() error                { return nil }

type lumber struct{ *lumberjack.Logger }

func (lumber) Sync() error { return nil }

// loggers make a function that logs a record.
var loggers = []struct {
	name  string
	sinks []string
	log   func(to sink) func(i int)
}{
	{"zap", []string{"BufferedWriteSyncer", "holdfast.Writer", "the same without sync", "rotate", "lumberjack", nothing}, func(to sink) func(i int) {
		l := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), to, zap.InfoLevel))
		return func(i int) {
			l.Info("request served", zap.Int("id", i), zap.String("path", "/api/items"), zap.Duration("took", 1234567))
		}
	}},
	{"zerolog", []string{"bufio+mutex", "holdfast.Writer", "the same without sync", "rotate", "lumberjack", nothing}, func(to sink) func(i int) {
		l := zerolog.New(to).With().Timestamp().Logger()
		return func(i int) {
			l.Info().Int("id", i).Str("path", "/api/items").Dur("took", 1234567).Msg("request served")
		}
	}},
	{"slog", []string{"bufio+mutex", "holdfast.Writer", "the same without sync", "rotate", "lumberjack", nothing}, func(to sink) func(i int) {
		l := slog.New(slog.NewJSONHandler(to, nil))
		return func(i int) {
			l.Info("request served", slog.Int("id", i), slog.String("path", "/api/items"), slog.Duration("took", 1234567))
		}
	}},
}

// An arm is a logger with a sink, and a load. Its figures are of each round: ns of a record.
type arm struct {
	logger, sink   string
	goroutines     int
	took, shut, on []float64 // until the last call returned; in Close, a record's share; on a CPU
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	dir := flags.String("dir", ".", "the `directory` whose disk is measured")
	records := flags.Int("records", 400_000, "how many records an arm logs in a round")
	rounds := flags.Int("rounds", 9, "how many rounds")
	loads := flags.String("goroutines", "1,8,64", "how many goroutines log, a `list`")
	only := flags.String("only", "", "one `logger`: zap, zerolog or slog")
	over := flags.String("over", "", "one `sink`, such as holdfast.Writer")
	profile := flags.String("profile", "", "write a CPU profile of all rounds to a `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var arms []*arm
	for _, load := range strings.Split(*loads, ",") {
		n, err := strconv.Atoi(load)
		if err != nil || n < 1 || *records < n || *rounds < 1 {
			return fmt.Errorf("--goroutines %q: %d records and %d rounds; give whole numbers from 1 on, and a record for each goroutine", load, *records, *rounds)
		}
		for _, l := range loggers {
			for _, s := range l.sinks {
				if (*only == "" || *only == l.name) && (*over == "" || *over == s) {
					arms = append(arms, &arm{logger: l.name, sink: s, goroutines: n})
				}
			}
		}
	}
	if len(arms) == 0 {
		return fmt.Errorf("no logger %q over %q; use zap, zerolog or slog over holdfast.Writer, rotate, lumberjack, …", *only, *over)
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	before := load()
	for round := range *rounds + 1 { // the first is not counted
		for i := range arms {
			if err := arms[(i+round)%len(arms)].run(*dir, *records, round > 0); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(out, "%d records a round, %d rounds, load before %s, after %s\n\n", *records, *rounds, before, load())
	fmt.Fprintln(out, "| logger | goroutines | over | ns a record | of the first | and Close | CPU ns a record | of the first |\n|---|---|---|---|---|---|---|---|")
	var first *arm
	for _, a := range arms {
		if first == nil || first.logger != a.logger || first.goroutines != a.goroutines {
			first = a
		}
		fmt.Fprintf(out, "| %s | %d | %s | %.0f | %s | %.0f | %.0f | %s |\n", a.logger, a.goroutines, a.sink,
			median(a.took), ratio(a.took, first.took), median(a.shut), median(a.on), ratio(a.on, first.on))
	}
	return nil
}

func (a *arm) run(dir string, records int, counts bool) error {
	dir, err := os.MkdirTemp(dir, "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "app.log")
	to, err := sinks[a.sink](path)
	if err != nil {
		return err
	}
	var log func(i int)
	for _, l := range loggers {
		if l.name == a.logger {
			log = l.log(to)
		}
	}
	cpu, start := cpuTime(), time.Now()
	var group sync.WaitGroup
	for g := range a.goroutines {
		group.Go(func() {
			for i := g; i < records; i += a.goroutines {
				log(i)
			}
		})
	}
	group.Wait()
	took := time.Since(start)
	if err := to.Close(); err != nil {
		return err
	}
	shut := time.Since(start) - took
	if counts {
		n := float64(records)
		a.took = append(a.took, float64(took)/n)
		a.shut = append(a.shut, float64(shut)/n)
		a.on = append(a.on, float64(cpuTime()-cpu)/n)
	}
	if a.sink == nothing {
		return nil
	}
	text, err := os.ReadFile(path)
	if lines := strings.Count(string(text), "\n"); err != nil || lines != records {
		return fmt.Errorf("%s over %s: %d of %d records are in the file: %w", a.logger, a.sink, lines, records, err)
	}
	return nil
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

// cpuTime returns what the process has taken of the CPUs.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// load is the mean number of tasks that ran or waited in the last minute.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(text), " ")
	return cmp.Or(one, "unknown")
}
