package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/DeRuina/timberjack"
	"github.com/golang/glog"
	"github.com/rs/zerolog"
	"github.com/sirupsen/logrus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/klog/v2"

	"github.com/holdfast-go/holdfast"
	forlogrus "github.com/holdfast-go/holdfast/adapters/logrus"
	forlumberjack "github.com/holdfast-go/holdfast/adapters/lumberjack"
	forzap "github.com/holdfast-go/holdfast/adapters/zap"
	forzerolog "github.com/holdfast-go/holdfast/adapters/zerolog"
	"github.com/holdfast-go/holdfast/rotate"
)

// logPolicy is of all logs: what the end of the process takes is at most 100 ms old, and what a power cut takes one second and the
// sync in flight.
var logPolicy = holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)}

const logPromise = "the last 1s + one sync"

func logOf(dir string) string { return filepath.Join(dir, "app.log") }

// keptLog has the lines of a log and of its backups, which are named app-TIME: app.log is the last.
func keptLog(dir string) ([]string, error) { return keptLines(filepath.Join(dir, "app*.log")) }

// keptLines has the lines with a record of all files of a pattern, in the order of their names.
func keptLines(pattern string) (lines []string, err error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "record ") && strings.HasSuffix(line, "\n") {
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// A page is what a logged request was for.
const path = "/api/items?category=books&page=7"

func zapBefore(at place) (*use, error) {
	config := zap.NewProductionConfig()
	config.OutputPaths = []string{logOf(at.dir)}
	return useZap(config)
}

func zapAfter(at place) (*use, error) {
	config := zap.NewProductionConfig()
	if err := forzap.Register(nil); err != nil {
		return nil, err
	}
	config.OutputPaths = []string{"holdfast://" + logOf(at.dir) + "?policy=" + at.policy.String()}
	return useZap(config)
}

func useZap(config zap.Config) (*use, error) {
	config.Sampling = nil // which would drop records
	logger, err := config.Build()
	if err != nil {
		return nil, err
	}
	return zapUse(logger, logger.Sync), nil
}

func zapUse(logger *zap.Logger, end func() error) *use {
	return &use{close: end, put: func(n uint64) error {
		logger.Info(fmt.Sprint("record ", n), zap.String("path", path), zap.Int("status", 200), zap.Duration("took", 1234567))
		return nil
	}}
}

func zerologBefore(at place) (*use, error) {
	f, err := os.OpenFile(logOf(at.dir), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return useZerolog(zerolog.New(f), f), nil
}

func zerologAfter(at place) (*use, error) {
	f, err := rotate.Open(logOf(at.dir), rotate.Options{Policy: at.policy})
	if err != nil {
		return nil, err
	}
	return useZerolog(zerolog.New(forzerolog.Writer{File: f}), f), nil
}

func useZerolog(logger zerolog.Logger, end io.Closer) *use {
	logger = logger.With().Timestamp().Logger()
	return &use{close: end.Close, put: func(n uint64) error {
		logger.Info().Str("path", path).Int("status", 200).Dur("took", 1234567).Msg(fmt.Sprint("record ", n))
		return nil
	}}
}

func logrusBefore(at place) (*use, error) {
	f, err := os.OpenFile(logOf(at.dir), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	logger := logrus.New()
	logger.SetOutput(f)
	return useLogrus(logger, f), nil
}

func logrusAfter(at place) (*use, error) {
	f, err := rotate.Open(logOf(at.dir), rotate.Options{Policy: at.policy})
	if err != nil {
		return nil, err
	}
	logger := logrus.New()
	forlogrus.Use(logger, f)
	return useLogrus(logger, f), nil
}

func useLogrus(logger *logrus.Logger, end io.Closer) *use {
	logger.SetFormatter(&logrus.JSONFormatter{})
	return &use{close: end.Close, put: func(n uint64) error {
		logger.WithFields(logrus.Fields{"path": path, "status": 200}).Info("record ", n)
		return nil
	}}
}

func klogBefore(at place) (*use, error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "log_file": logOf(at.dir)} {
		if err := flags.Set(name, value); err != nil {
			return nil, err
		}
	}
	return useKlog(func() error { return nil }), nil
}

func klogAfter(at place) (*use, error) {
	f, err := rotate.Open(logOf(at.dir), rotate.Options{Policy: at.policy})
	if err != nil {
		return nil, err
	}
	klog.LogToStderr(false)
	klog.SetOutput(f)
	return useKlog(f.Close), nil
}

func useKlog(end func() error) *use {
	return &use{
		put: func(n uint64) error {
			klog.InfoS(fmt.Sprint("record ", n), "path", path, "status", 200)
			return nil
		},
		close: func() error { klog.Flush(); return end() },
	}
}

func glogBefore(at place) (*use, error) {
	if err := flag.Set("log_dir", at.dir); err != nil {
		return nil, err
	}
	return useGlog(none), nil
}

func glogAfter(at place) (*use, error) {
	f, err := rotate.Open(logOf(at.dir), rotate.Options{Policy: at.policy})
	if err != nil {
		return nil, err
	}
	if err := flag.Set("logtostderr", "true"); err != nil {
		return nil, err
	}
	end, err := stderrTo(f)
	if err != nil {
		return nil, err
	}
	return useGlog(end), nil
}

// stderrTo has all go to a log that is written to os.Stderr, by a pipe. Words of Go's runtime still go to descriptor 2.
func stderrTo(to io.WriteCloser) (end func() error, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	before := os.Stderr
	os.Stderr = w
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(to, r)
		copied <- err
	}()
	return func() error {
		os.Stderr = before
		return errors.Join(w.Close(), <-copied, r.Close(), to.Close())
	}, nil
}

func useGlog(end func() error) *use {
	return &use{
		put: func(n uint64) error {
			glog.Info("record ", n, " path=", path, " status=", 200)
			return nil
		},
		close: func() error { glog.Flush(); return end() },
	}
}

// keptGlog has the lines of glog's own files, one of each process, which are named by their time.
func keptGlog(dir string) ([]string, error) {
	return keptLines(filepath.Join(dir, "*.log.INFO.*"))
}

func timberjackBefore(at place) (*use, error) {
	return useSlog(&timberjack.Logger{Filename: logOf(at.dir), MaxSize: 8, RotateAt: []string{"00:00"}}), nil
}

func timberjackAfter(at place) (*use, error) {
	return useSlog(&forlumberjack.Logger{Filename: logOf(at.dir), MaxSize: 8, RotateAt: []string{"00:00"}, Policy: at.policy}), nil
}

func slogBefore(at place) (*use, error) {
	return useSlog(&lumberjack.Logger{Filename: logOf(at.dir), MaxSize: 8}), nil
}

func slogAfter(at place) (*use, error) {
	return useSlog(&forlumberjack.Logger{Filename: logOf(at.dir), MaxSize: 8, Policy: at.policy}), nil
}

func useSlog(to io.WriteCloser) *use {
	logger := slog.New(slog.NewJSONHandler(to, nil))
	return &use{close: to.Close, put: func(n uint64) error {
		logger.Info(fmt.Sprint("record ", n), "path", path, "status", 200, "took", time.Duration(1234567))
		return nil
	}}
}

// An exporter writes lines of JSON as the OpenTelemetry collector's file exporter does: under a lock, and the line feed by a call of
// its own.
type exporter struct {
	mu sync.Mutex
	to io.WriteCloser
}

func (e *exporter) export(line []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.to.Write(line); err != nil {
		return err
	}
	_, err := io.WriteString(e.to, "\n")
	return err
}

func otelBefore(at place) (*use, error) {
	to := &timberjack.Logger{Filename: logOf(at.dir), MaxSize: 8}
	return useOtel(to), nil
}

func otelAfter(at place) (*use, error) {
	to, err := rotate.Open(logOf(at.dir), rotate.Options{MaxSize: 8 * holdfast.MiB, Policy: at.policy})
	if err != nil {
		return nil, err
	}
	return useOtel(to), nil
}

func useOtel(to io.WriteCloser) *use {
	e := &exporter{to: to}
	return &use{close: to.Close, put: func(n uint64) error {
		return e.export(fmt.Appendf(nil, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"record %d","attributes":[{"key":"url.path","value":{"stringValue":%q}}],"kind":2}]}]}]}`, n, path))
	}}
}

func caddyBefore(at place) (*use, error) {
	return useCaddy(&timberjack.Logger{Filename: logOf(at.dir), MaxSize: 8})
}

func caddyAfter(at place) (*use, error) {
	return useCaddy(&forlumberjack.Logger{Filename: logOf(at.dir), MaxSize: 8, Policy: at.policy})
}

// useCaddy runs a server with an access log of JSON by zap, as Caddy has it, and asks it by HTTP.
func useCaddy(to io.WriteCloser) (*use, error) {
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	access := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(to), zap.InfoLevel))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello")
		access.Info(strings.TrimPrefix(r.URL.Path, "/"), zap.String("method", r.Method), zap.String("proto", r.Proto), zap.Any("headers", r.Header),
			zap.Int("status", 200), zap.Int("size", 5))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return &use{
		put: func(n uint64) error {
			answer, err := client.Get(fmt.Sprintf("http://%s/record%%20%d", listener.Addr(), n))
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, answer.Body)
			return errors.Join(err, answer.Body.Close())
		},
		close: func() error {
			client.CloseIdleConnections()
			err := server.Close()
			if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
				err = errors.Join(err, ended)
			}
			return errors.Join(err, to.Close())
		}}, nil
}
