// Package lumberjack has the Logger of gopkg.in/natefinch/lumberjack.v2 over package rotate: a
// program changes one import, and a rotation loses no record and splits none. It adds a Policy, so
// that the program chooses what a crash may take, and OnError.
//
// It differs from lumberjack in four points: a record longer than MaxSize is not refused; the record
// that reaches MaxSize is the last of its file, and does not begin the next one; an empty file is not
// rotated; a torn last line is ended first. The limits hold when Close has returned.
//
// The fields of github.com/DeRuina/timberjack are here too, but for AppendTimeAfterExt. Backups have
// no reason in their names, so RotateWithReason is not here either.
package lumberjack

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

	// The fields of timberjack. RotationInterval and RotateAt rotate by time, and BackupTimeFormat is
	// the TimeFormat, as in [rotate.Options]; RotateAtMinutes are minutes of each hour. Compression is
	// "", none, gzip, or zstd, which needs the Compressor. FileMode is the permissions of a new
	// file before umask; 0 is 0600.
	RotationInterval time.Duration `json:"rotationinterval" yaml:"rotationinterval"`
	RotateAt         []string      `json:"rotateAt" yaml:"rotateAt"`
	RotateAtMinutes  []int         `json:"rotateAtMinutes" yaml:"rotateAtMinutes"`
	BackupTimeFormat string        `json:"backuptimeformat" yaml:"backuptimeformat"`
	Compression      string        `json:"compression,omitempty" yaml:"compression,omitempty"`
	FileMode         os.FileMode   `json:"filemode" yaml:"filemode"`

	// Compressor is another format than gzip, such as adapters/zstd.
	Compressor rotate.Compressor `json:"-" yaml:"-"`
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
	o, err := l.options()
	if err != nil {
		return err
	}
	path := l.Filename
	if path == "" {
		path = filepath.Join(os.TempDir(), filepath.Base(os.Args[0])+"-lumberjack.log")
	}
	f, err := rotate.Open(path, o)
	if err != nil {
		return err
	}
	l.log = f
	return nil
}

// options returns the log's options, or an error that names the field.
func (l *Logger) options() (o rotate.Options, err error) {
	o = rotate.Options{
		MaxSize: holdfast.Size(cmp.Or(l.MaxSize, 100)) * holdfast.MiB, MaxAge: time.Duration(l.MaxAge) * 24 * time.Hour, MaxBackups: l.MaxBackups,
		LocalTime: l.LocalTime, TimeFormat: l.BackupTimeFormat, RotationInterval: l.RotationInterval, RotateAt: slices.Clone(l.RotateAt),
		Compress: l.Compress, Compressor: l.Compressor,
		Perm: cmp.Or(l.FileMode, 0o600), DirPerm: 0o755,
		Policy: l.Policy, OnError: l.OnError,
	}
	for name, value := range map[string]int{"MaxSize": l.MaxSize, "MaxAge": l.MaxAge} { // rotate refuses the others
		if value < 0 {
			return o, fmt.Errorf("lumberjack: %s %d is negative; use 0 for the default", name, value)
		}
	}
	for _, minute := range l.RotateAtMinutes {
		if minute < 0 || minute > 59 {
			return o, fmt.Errorf("lumberjack: RotateAtMinutes %d is no minute; use 0 to 59", minute)
		}
		o.RotateAt = append(o.RotateAt, fmt.Sprintf("*:%02d", minute))
	}
	switch l.Compression {
	case "":
		o.Compress = l.Compress || l.Compressor.New != nil
	case "none":
		o.Compress, o.Compressor = false, rotate.Compressor{}
	case "gzip":
		o.Compress, o.Compressor = true, rotate.Compressor{}
	case "zstd":
		if o.Compress = true; l.Compressor.New == nil {
			return o, errors.New("lumberjack: Compression is zstd, and Compressor is not set; set it to zstd.Compressor() of adapters/zstd")
		}
	default:
		return o, fmt.Errorf("lumberjack: Compression %q is unknown; use none, gzip or zstd", l.Compression)
	}
	return o, nil
}
