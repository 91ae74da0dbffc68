package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
)

// optionsText is Options as JSON and YAML have them.
type optionsText struct {
	Policy   holdfast.Policy `json:"policy" yaml:"policy"`
	Workers  int             `json:"workers,omitempty" yaml:"workers"`
	Handles  int             `json:"handles,omitempty" yaml:"handles"`
	Memory   holdfast.Size   `json:"memory,omitzero" yaml:"memory"`
	MkdirAll bool            `json:"mkdir_all,omitempty" yaml:"mkdir_all"`
	Perm     permText        `json:"perm,omitzero" yaml:"perm"`
	Lines    bool            `json:"lines,omitempty" yaml:"lines"`
	Retry    retryText       `json:"retry,omitzero" yaml:"retry"`
	Batch    int             `json:"batch,omitempty" yaml:"batch"`
	Effort   holdfast.Effort `json:"effort,omitzero" yaml:"effort"`

	Unknown map[string]any `json:"-" yaml:",inline"`
}

type retryText struct {
	Attempts int          `json:"attempts,omitempty" yaml:"attempts"`
	Base     durationText `json:"base,omitzero" yaml:"base"`
	Cap      durationText `json:"cap,omitzero" yaml:"cap"`

	Unknown map[string]any `json:"-" yaml:",inline"`
}

// A permText is octal digits, such as 0644.
type permText fs.FileMode

// A durationText is a duration such as 100ms.
type durationText time.Duration

func (o Options) text() optionsText {
	return optionsText{Policy: o.Policy, Workers: o.Workers, Handles: o.Handles, Memory: o.Memory, MkdirAll: o.MkdirAll, Perm: permText(o.Perm), Lines: o.Lines, Batch: o.Batch, Effort: o.Effort,
		Retry: retryText{Attempts: o.Retry.Attempts, Base: durationText(o.Retry.Base), Cap: durationText(o.Retry.Cap)}}
}

// read sets the options to decode's, or on an error nothing.
func (o *Options) read(decode func(*optionsText) error) error {
	t := o.text()
	err := decode(&t)
	if err == nil && len(t.Unknown)+len(t.Retry.Unknown) > 0 {
		err = fmt.Errorf("unknown keys %q", append(slices.Sorted(maps.Keys(t.Unknown)), slices.Sorted(maps.Keys(t.Retry.Unknown))...))
	}
	if err != nil {
		return fmt.Errorf("files: options: %w; the keys are policy, workers, handles, memory, mkdir_all, perm, lines, batch, effort, and retry with attempts, base and cap", err)
	}
	read := Options{Policy: t.Policy, Workers: t.Workers, Handles: t.Handles, Memory: t.Memory, MkdirAll: t.MkdirAll, Perm: fs.FileMode(t.Perm), Lines: t.Lines, Batch: t.Batch, Effort: t.Effort, Root: o.Root, Logger: o.Logger,
		Retry: Retry{Attempts: t.Retry.Attempts, Base: time.Duration(t.Retry.Base), Cap: time.Duration(t.Retry.Cap)}}
	if err := read.Validate(); err != nil {
		return err
	}
	*o = read
	return nil
}

// UnmarshalJSON reads an object with these keys:
//
//	policy     text, such as "buffer=64KiB,sync=1s"
//	workers    a whole number
//	handles    a whole number
//	memory     text, such as "64MiB"
//	mkdir_all  true or false
//	perm       text of octal digits, such as "0644"
//	lines      true or false
//	batch      a whole number
//	effort     text, "strict" or "best"
//	retry      an object of attempts (a whole number), base and cap (text, such as "100ms")
//
// Any other key or type is an error, and so are options that [Options.Validate] refuses.
// A missing key leaves its option unchanged, and null changes nothing. On an error o is unchanged.
func (o *Options) UnmarshalJSON(data []byte) error {
	return o.read(func(t *optionsText) error {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(t); err != nil {
			return err
		}
		if _, err := d.Token(); err != io.EOF {
			return fmt.Errorf("there is more than one JSON value")
		}
		return nil
	})
}

// UnmarshalYAML is called by packages that read YAML, with a function that fills
// what it is pointed to. It takes the keys of [Options.UnmarshalJSON]; what is left out
// stays as it was. On an error o is unchanged.
func (o *Options) UnmarshalYAML(unmarshal func(any) error) error {
	return o.read(func(t *optionsText) error { return unmarshal(t) })
}

// MarshalJSON writes what UnmarshalJSON reads, without the defaults, or returns the
// error of Validate.
func (o Options) MarshalJSON() ([]byte, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(o.text())
}

func (d durationText) MarshalText() ([]byte, error) {
	return []byte(time.Duration(d).String()), nil
}

func (d *durationText) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("retry: %.60q is not a duration; write it like 100ms", text)
	}
	*d = durationText(v)
	return nil
}

func (p permText) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%04o", unixPerm(fs.FileMode(p))), nil
}

// UnmarshalText refuses 0 because that is the default and not what it says.
func (p *permText) UnmarshalText(text []byte) error {
	bits, err := strconv.ParseUint(string(text), 8, 16)
	if err != nil || bits == 0 || bits > 0o7777 {
		return fmt.Errorf("perm: %.60q is not a file's permissions; write octal digits in quotes, such as \"0644\"", text)
	}
	m := fs.FileMode(bits) & fs.ModePerm
	for i, special := range specialBits {
		if bits&(0o1000<<i) != 0 {
			m |= special
		}
	}
	*p = permText(m)
	return nil
}
