package rotate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Options say when a log is rotated and which backups are kept. Zero turns a limit off: with the
// zero Options nothing rotates by itself and every backup is kept.
type Options struct {
	// MaxSize is the size at which a file is rotated: the record that reaches it is the file's
	// last. So a file exceeds MaxSize by less than one record of each goroutine that writes, plus
	// the records accepted while a rotation fails.
	MaxSize holdfast.Size

	// Records says that each Write is a record. Without it a record is a line: a rotation comes
	// behind a Write that ends in a line feed, so a logger may write a line by several Writes. A
	// line that goes on for 1 MiB or 1 min after the rotation was due is divided.
	Records bool

	// RotationInterval rotates at multiples of the interval since 1970 (UTC, see LocalTime), at least
	// 1s: 1h is each full hour. RotateAt rotates at times of day, such as "00:00", in [time.Local];
	// "*:15" is each hour at 15 minutes. A time of day that the clock skips when it is set forward
	// comes later that day by the same amount, and one that comes twice counts once. A time that passed
	// while no process had the log open counts at Open. An empty file is not rotated.
	RotationInterval time.Duration
	RotateAt         []string

	// LocalTime says that the times in backups' names, and the multiples of RotationInterval, are in
	// [time.Local] and not in UTC: 24h is each local midnight. Don't change it for a log that has backups: their ages
	// and their order would be wrong by the difference to UTC. The hour that
	// comes twice when the clock is set back has its names after the first one's.
	LocalTime bool

	// MaxBackups is the most backups kept, MaxAge their greatest age, and MaxTotal the most bytes
	// of all backups, without the log itself. The oldest are removed, after Open, after each
	// rotation and in Close. The newest counts for MaxTotal when it is compressed. Setting the clock while the
	// log is open does not change a backup's age.
	MaxBackups int
	MaxAge     time.Duration
	MaxTotal   holdfast.Size

	// Compress compresses backups with gzip in the background, one at a time, using at most half of
	// one CPU.
	Compress bool

	// Compressor is another format, such as adapters/zstd. The zero Compressor is gzip. Backups
	// compressed by gzip count too, backups in a third format do not.
	Compressor Compressor

	// Header is written before the first record of each new file. A file that has no record has no
	// header.
	Header []byte

	// Rotated is called after a rotation: the file at path is the backup from now on. Compressed is
	// called after a compression has replaced a backup. They are called in the order of the events,
	// one call at a time, in a goroutine of their own, without a lock: a slow call delays no Write.
	// OnError reports an error that they return. Close waits for the calls, so they must not call
	// it.
	Rotated    func(path, backup string) error
	Compressed func(backup, compressed string) error

	// Keep is called before a backup beyond the limits is removed, with each of its files, and not
	// twice at the same time. If it returns true the file stays; it is asked again the next time.
	// Close may call it: it must not call Close.
	Keep func(backup string) bool

	// Shared says that other processes have the log open too, each with Shared and the same limits,
	// on a local file system (not NFS). Each write locks the file (flock), and is of whole records as
	// far as one fits into the Policy's Buffer: so give it a buffer, or write each record by one Write.
	// One process rotates, and the others go on in the new file with their next record; Rotated and
	// Compressed are called in the process that did it. Records of one process keep their order. A
	// process that is stopped (SIGSTOP) during a write stops the others' writes. Removing the file
	// is not noticed at a sync. Open refuses Shared where files have no such locks, as on Windows.
	Shared bool

	// TimeFormat is the layout of the times in backups' names, as in package time; "" is
	// "2006-01-02T15-04-05.000". It must give the second at least, and names of one length that can be
	// read back. Backups with another layout are left alone.
	TimeFormat string

	// Perm is the permissions of the first file, before umask; 0 is 0666. With SetPerm, Open gives
	// them to a file that exists, too, and without umask. A new file gets the permissions and the access
	// control list of the file before it, and its owner and group if the system permits it. No user may
	// use the new file who could not use the one before.
	Perm    fs.FileMode
	SetPerm bool

	// DirPerm has Open make the directories that are missing, with these permissions before umask. 0
	// makes none. If the policy syncs, the names of the log's directory and of those above it, on its
	// file system, are durable when Open returns.
	DirPerm fs.FileMode

	// Policy is the policy of the log's Writer. The zero Policy hands each record to the kernel.
	Policy holdfast.Policy

	// OnError is called once for each failure, in a goroutine of its own, one call at a time,
	// without a lock. So it may log, to this log too, and call Close, which does not wait for it.
	// Failed writes in a row are one failure.
	OnError func(*Error)

	// OnSlowSync is called while a sync of the log's file runs for longer than SlowSync, once for each,
	// as OnError is. 0 never calls it.
	SlowSync   time.Duration
	OnSlowSync func(holdfast.SlowSync)
}

// A Compressor defines a compression format of backups. New returns a writer that compresses to w;
// it is always closed, also after a failure. It must not panic or leave a goroutine. Suffix is the
// suffix of compressed backups: a dot and one to three letters or digits, such as ".zst".
type Compressor struct {
	Suffix string
	New    func(w io.Writer) (io.WriteCloser, error)
}

// validate returns nil, or an error that names the invalid value.
func (c Compressor) validate(compress bool) error {
	rest, dotted := strings.CutPrefix(c.Suffix, ".")
	letters := strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	switch {
	case c.Suffix == "" && c.New == nil:
		return nil
	case c.New == nil:
		return fmt.Errorf("option Compressor of %q has no New", c.Suffix)
	case !compress:
		return errors.New("option Compressor is set and Compress is not")
	case !dotted || rest == "" || !letters || len(c.Suffix) > longestPacked || c.Suffix == packed:
		return fmt.Errorf("option Compressor has the suffix %q; use a dot and one to three letters or digits, such as .zst", c.Suffix)
	}
	return nil
}

// validate returns nil, or an error that names the invalid field and its value.
func (o Options) validate() error {
	for _, x := range []struct {
		name     string
		negative bool
		value    any
	}{
		{"MaxSize", o.MaxSize < 0, int64(o.MaxSize)},
		{"RotationInterval", o.RotationInterval < 0, o.RotationInterval},
		{"MaxBackups", o.MaxBackups < 0, o.MaxBackups},
		{"MaxAge", o.MaxAge < 0, o.MaxAge},
		{"MaxTotal", o.MaxTotal < 0, int64(o.MaxTotal)},
		{"SlowSync", o.SlowSync < 0, o.SlowSync},
	} {
		if x.negative {
			return fmt.Errorf("%s %v is negative; 0 sets no limit", x.name, x.value)
		}
	}
	if o.RotationInterval > 0 && o.RotationInterval < time.Second {
		return fmt.Errorf("RotationInterval %v is below 1s; use a longer one, or MaxSize", o.RotationInterval)
	}
	for _, text := range o.RotateAt {
		if _, _, err := timeOfDay(text); err != nil {
			return err
		}
	}
	for name, perm := range map[string]fs.FileMode{"Perm": o.Perm, "DirPerm": o.DirPerm} {
		if perm&^fs.ModePerm != 0 {
			return fmt.Errorf("option %s %v holds more than permissions; use a value like 0o750", name, perm)
		}
	}
	if o.SetPerm && o.Perm == 0 {
		return errors.New("option SetPerm is set and Perm is not; give the permissions, such as 0o640")
	}
	if err := o.Compressor.validate(o.Compress); err != nil {
		return err
	}
	return o.Policy.Validate()
}

// limits reports whether backups are to be removed.
func (o *Options) limits() bool { return o.MaxBackups > 0 || o.MaxAge > 0 || o.MaxTotal > 0 }

// nextMinute returns the next time at which the local clock shows a minute. It looks at each,
// because the clock may be set by half an hour before.
func nextMinute(after time.Time, minute int) time.Time {
	l := after.Local()
	for at := l.Add(-time.Duration(l.Second())*time.Second - time.Duration(l.Nanosecond())); ; at = at.Add(time.Minute) {
		if at.After(after) && at.Minute() == minute {
			return at
		}
	}
}

// eachHour is the hour of a time such as *:30.
const eachHour = -1

// timeOfDay parses a time such as 09:30 or *:30.
func timeOfDay(text string) (hour, minute int, err error) {
	left, right, ok := strings.Cut(text, ":")
	h, badHour := strconv.ParseUint(left, 10, 8)
	m, badMinute := strconv.ParseUint(right, 10, 8)
	each := left == "*"
	if !ok || !each && (len(left) != 2 || badHour != nil || h > 23) || len(right) != 2 || badMinute != nil || m > 59 {
		return 0, 0, fmt.Errorf("RotateAt %q is no time of the day; write it like 00:00 or 23:30, or *:30 for each hour", text)
	}
	if each {
		return eachHour, int(m), nil
	}
	return int(h), int(m), nil
}

// layout returns the layout of the times in backups' names.
func (o *Options) layout() string { return cmp.Or(o.TimeFormat, stamp) }

// timeStep returns the shortest time between two backups with different names, or an error if
// TimeFormat is no layout of backups' names.
func (o *Options) timeStep() (step time.Duration, err error) {
	layout := o.layout()
	bad := func(why string) error {
		return fmt.Errorf("option TimeFormat %q %s; use a layout such as %q", o.TimeFormat, why, stamp)
	}
	if strings.ContainsAny(layout, "/\\\x00") {
		return 0, bad("is no part of a file's name")
	}
	for _, at := range []time.Time{
		time.Date(2006, 1, 2, 3, 4, 5, 123e6, time.UTC), time.Date(2026, 11, 28, 23, 59, 59, 999e6, time.UTC),
		time.Date(1999, 9, 29, 12, 30, 0, 0, time.UTC), time.Date(2026, 5, 6, 0, 0, 1, 7e6, time.UTC),
	} {
		text := at.Format(layout)
		if len(text) != len(time.Time{}.Format(layout)) {
			return 0, bad("has times of different lengths")
		}
		for _, s := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 0} {
			if s == 0 {
				return 0, bad("does not give the time to the second")
			}
			if back, err := time.Parse(layout, text); err == nil && back.Equal(at.Truncate(s)) {
				step = max(step, s)
				break
			}
		}
	}
	return step, nil
}

// wall returns the time that names have: what a clock in UTC, or the local clock, shows, as a time
// in UTC.
func (o *Options) wall(t time.Time) time.Time {
	if o.LocalTime {
		_, east := t.Local().Zone()
		t = t.Add(time.Duration(east) * time.Second)
	}
	return t.UTC()
}

// due returns the first time of a rotation after a given time, or the zero Time.
func (o Options) due(after time.Time) (first time.Time) {
	earlier := func(at time.Time) {
		if at.After(after) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if every := o.RotationInterval; every > 0 {
		wall := o.wall(after)
		since := time.Duration(wall.UnixNano()) // of 1970: Truncate counts from year 1
		at := after.Add(every - since%every)
		if time.Duration(o.wall(at).UnixNano())%every != 0 { // the local clock is set before that
			w := wall.Add(every - since%every)
			local := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), time.Local)
			if local.After(after) {
				at = local
			}
		}
		earlier(at)
	}
	year, month, day := after.Local().Date()
	for _, text := range o.RotateAt {
		hour, minute, _ := timeOfDay(text) // Open has checked it
		if hour == eachHour {
			earlier(nextMinute(after, minute))
			continue
		}
		for days := range 3 { // a day may lack a time of day, when the clock is set forward
			at := time.Date(year, month, day+days, hour, minute, 0, 0, time.Local)
			_, east := at.Zone()
			// Date may return a missing time too early: 23:00 of the day before for 00:00.
			if late := time.Date(year, month, day+days, hour, minute, -east, 0, time.UTC).Local(); late.After(at) {
				at = late
			}
			earlier(at)
		}
	}
	return first
}
