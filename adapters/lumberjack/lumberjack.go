// Package lumberjack has the Logger of gopkg.in/natefinch/lumberjack.v2 over package rotate: a
// program changes one import, and a rotation loses no record and splits none. It adds a Policy, so
// that the program chooses what a crash may take, and OnError.
//
// It differs from lumberjack in four points: a record longer than MaxSize is not refused; the record
// that reaches MaxSize is the last of its file, and does not begin the next one; an empty file is not
// rotated; a torn last line is ended first. The limits hold when Close has returned.
package lumberjack

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

// A Logger is a log file that rotates. Its fields must not change after the first call. The file
// and its directories are made by the first Write. Any number of goroutines may call its methods.
type Logger struct {
	// Filename is the log's path; "" is <program>-lumberjack.log in [os.TempDir].
	Filename string `json:"filename" yaml:"filename"`
	// MaxSize is the size in MB of 1024×1024 bytes at which the file is rotated; 0 is 100.
	MaxSize int `json:"maxsize" yaml:"maxsize"`
	// MaxAge is the greatest age of a backup in days of 24 hours, and MaxBackups the most backups
	// kept; 0 is no limit.
	MaxAge     int `json:"maxage" yaml:"maxage"`
	MaxBackups int `json:"maxbackups" yaml:"maxbackups"`
	// LocalTime has the local time in backups' names, and not UTC.
	LocalTime bool `json:"localtime" yaml:"localtime"`
	// Compress compresses backups with gzip.
	Compress bool `json:"compress" yaml:"compress"`

	// RotationInterval and RotateAt rotate by time, as in [rotate.Options].
	RotationInterval time.Duration `json:"rotationinterval" yaml:"rotationinterval"`
	RotateAt         []string      `json:"rotateat" yaml:"rotateat"`

	// Policy says what a crash may take. The zero Policy hands each record to the kernel, as
	// lumberjack does.
	Policy holdfast.Policy `json:"policy" yaml:"policy"`
	// OnError is called once for each failure, as in [rotate.Options].
	OnError func(*rotate.Error) `json:"-" yaml:"-"`

	mu  sync.RWMutex
	log *rotate.File // nil: not open
}

// Write accepts the record p, see [rotate.File.Write]. It opens the log if it is not open, also
// after Close.
func (l *Logger) Write(p []byte) (n int, err error) {
	err = l.use(func(f *rotate.File) (err error) {
		n, err = f.Write(p)
		return err
	})
	return n, err
}

// Rotate begins a new file, unless the current one is empty.
func (l *Logger) Rotate() error { return l.use((*rotate.File).Rotate) }

// Sync makes all records accepted before durable. It does nothing if the log is not open.
func (l *Logger) Sync() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.log == nil {
		return nil
	}
	return l.log.Sync()
}

// Close flushes all accepted records, syncs them unless the policy is sync=never, and closes the
// log. A later Write opens it again.
func (l *Logger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log == nil {
		return nil
	}
	f := l.log
	l.log = nil
	return f.Close()
}

// use calls what with the log, open.
func (l *Logger) use(what func(*rotate.File) error) error {
	l.mu.RLock()
	for l.log == nil {
		l.mu.RUnlock()
		if err := l.open(); err != nil {
			return err
		}
		l.mu.RLock()
	}
	defer l.mu.RUnlock()
	return what(l.log)
}

func (l *Logger) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log != nil {
		return nil
	}
	for _, x := range []struct {
		name  string
		value int
	}{{"MaxSize", l.MaxSize}, {"MaxAge", l.MaxAge}} { // rotate refuses the others
		if x.value < 0 {
			return fmt.Errorf("lumberjack: %s %d is negative; use 0 for the default", x.name, x.value)
		}
	}
	path, size := l.Filename, l.MaxSize
	if path == "" {
		path = filepath.Join(os.TempDir(), filepath.Base(os.Args[0])+"-lumberjack.log")
	}
	if size == 0 {
		size = 100
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("lumberjack: the log's directory: %w", err)
	}
	f, err := rotate.Open(path, rotate.Options{
		MaxSize: holdfast.Size(size) * holdfast.MiB, MaxAge: time.Duration(l.MaxAge) * 24 * time.Hour, MaxBackups: l.MaxBackups,
		LocalTime: l.LocalTime, Compress: l.Compress, Perm: 0o600,
		RotationInterval: l.RotationInterval, RotateAt: l.RotateAt,
		Policy: l.Policy, OnError: l.OnError,
	})
	if err != nil {
		return err
	}
	l.log = f
	return nil
}
