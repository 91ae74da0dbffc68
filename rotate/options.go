package rotate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Options say when a log is rotated and which backups stay. Every zero is "not at all": the zero
// Options never rotates by itself and keeps everything.
type Options struct {
	// MaxSize is how large a file becomes: the record that reaches it is the file's last. So a
	// file exceeds it by less than one record of each goroutine that writes, and by what comes
	// while a rotation fails.
	MaxSize holdfast.Size

	// RotationInterval rotates at the multiples of an interval since 1970 (UTC), at least 1 s:
	// 1h is at each full hour. RotateAt rotates at times of the day, such as "00:00", in
	// [time.Local]. One that a clock leaves out as it is set forward is as much later that day, and
	// one that comes twice counts once. A time that passed while no process had the log counts
	// at Open. An empty file is not rotated.
	RotationInterval time.Duration
	RotateAt         []string

	// MaxBackups is how many backups stay, MaxAge how old they become, and MaxTotal how many
	// bytes they take together, without the log itself. The oldest are removed, after Open and
	// after each rotation. The newest counts for MaxTotal when it is compressed. A clock that is
	// set while the log is open makes no backup older.
	MaxBackups int
	MaxAge     time.Duration
	MaxTotal   holdfast.Size

	// Compress has backups compressed, with gzip, in the background, one at a time, with
	// half of one CPU at most.
	Compress bool

	// Compressor compresses them in another form, such as that of adapters/zstd. The zero
	// Compressor is gzip's. Backups that gzip has compressed count too, those of any third form
	// do not.
	Compressor Compressor

	// Perm is what the first file may be used for, before umask; 0 is 0666. A new file gets the
	// permissions and the access control list of the one before it, and its owner and group
	// where the system permits it. Nobody may use it who could not use the one before.
	Perm fs.FileMode

	// Policy is that of the log's Writer. The zero Policy hands each record to the kernel.
	Policy holdfast.Policy

	// OnError is called once for each failure, in a goroutine of its own, one call at a time,
	// without a lock. So it may log, to this log too, and call Close, which does not wait for it.
	// A failure of the writes is one until a record is accepted again.
	OnError func(*Error)
}

// A Compressor says how backups are compressed. New returns what compresses to w, and is closed
// in the end, also after a failure. It must not panic, and leave no goroutine. Suffix is behind the
// names of compressed backups: a dot and one to three letters or digits, such as ".zst".
type Compressor struct {
	Suffix string
	New    func(w io.Writer) (io.WriteCloser, error)
}

// validate returns an error that names what can't be kept.
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

// validate returns an error that names the field and the value which can't be kept.
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
	} {
		if x.negative {
			return fmt.Errorf("%s %v is negative; 0 sets no limit", x.name, x.value)
		}
	}
	if o.RotationInterval > 0 && o.RotationInterval < time.Second {
		return fmt.Errorf("RotationInterval %v is below 1s; use a longer one, or MaxSize", o.RotationInterval)
	}
	for _, text := range o.RotateAt {
		if _, err := timeOfDay(text); err != nil {
			return err
		}
	}
	if o.Perm&^fs.ModePerm != 0 {
		return fmt.Errorf("option Perm %v holds more than permissions; use a value like 0o640", o.Perm)
	}
	if err := o.Compressor.validate(o.Compress); err != nil {
		return err
	}
	return o.Policy.Validate()
}

// timeOfDay reads hours and minutes, such as 09:30, as minutes since midnight.
func timeOfDay(text string) (minutes int, err error) {
	hour, minute, ok := strings.Cut(text, ":")
	h, badHour := strconv.ParseUint(hour, 10, 8)
	m, badMinute := strconv.ParseUint(minute, 10, 8)
	if !ok || len(hour) != 2 || len(minute) != 2 || badHour != nil || badMinute != nil || h > 23 || m > 59 {
		return 0, fmt.Errorf("RotateAt %q is no time of the day; write it like 00:00 or 23:30", text)
	}
	return int(h)*60 + int(m), nil
}

// due returns the first time after another at which the log is to be rotated, or the zero Time.
func (o Options) due(after time.Time) (first time.Time) {
	earlier := func(at time.Time) {
		if at.After(after) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if every := o.RotationInterval; every > 0 {
		since := time.Duration(after.UnixNano()) // of 1970: Truncate counts from year 1
		earlier(after.Add(every - since%every))
	}
	year, month, day := after.Local().Date()
	for _, text := range o.RotateAt {
		minutes, _ := timeOfDay(text) // was checked by Open
		for days := range 3 {         // a clock that is set forward may leave a time of the day out
			at := time.Date(year, month, day+days, 0, minutes, 0, 0, time.Local)
			_, east := at.Zone()
			// Date may return such a time too early: 23:00 of the day before for 00:00.
			if late := time.Date(year, month, day+days, 0, minutes, -east, 0, time.UTC).Local(); late.After(at) {
				at = late
			}
			earlier(at)
		}
	}
	return first
}
