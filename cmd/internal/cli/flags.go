package cli

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
)

// A FlagValue is a pflag.Value with a parser.
type FlagValue struct {
	Kind  string // shown in the help
	Parse func(text string) error
	Text  func() string
}

func (v FlagValue) Set(text string) error { return v.Parse(text) }
func (v FlagValue) Type() string          { return v.Kind }
func (v FlagValue) String() string        { return v.Text() }

// Many returns a flag that may be given more than once.
func Many[T any](kind string, values *[]T, parse func(string) (T, error)) FlagValue {
	set := func(text string) error {
		v, err := parse(text)
		if err == nil {
			*values = append(*values, v)
		}
		return err
	}
	return FlagValue{kind, set, func() string { return strings.Trim(fmt.Sprint(*values), "[]") }}
}

// List returns a flag of several values with commas between them, which may be given more than
// once.
func List[T any](kind string, values *[]T, parse func(string) (T, error)) FlagValue {
	f := Many(kind, values, parse)
	one := f.Parse
	f.Parse = func(text string) error {
		for _, part := range strings.Split(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				return fmt.Errorf("%q has an empty value; leave the comma out, or name one", text)
			}
			if err := one(part); err != nil {
				return err
			}
		}
		return nil
	}
	return f
}

// Once returns a flag with one value: if it is given again, the last value counts.
func Once[T any](kind string, value *T, parse func(string) (T, error)) FlagValue {
	set := func(text string) error {
		v, err := parse(text)
		if err == nil {
			*value = v
		}
		return err
	}
	return FlagValue{kind, set, func() string { return fmt.Sprint(*value) }}
}

// Target is Once for the name of what is to be made. A second name is refused: only one of them would be made.
func Target[T any](kind string, value *T, parse func(string) (T, error)) FlagValue {
	f, first := Once(kind, value, parse), ""
	set := f.Parse
	f.Parse = func(text string) error {
		if first != "" && text != first {
			return fmt.Errorf("%s and %s are two names; give one", OneLine(first), OneLine(text))
		}
		err := set(text)
		if err == nil {
			first = text
		}
		return err
	}
	return f
}

// ParseBetween returns a parser of whole numbers from least to most. Its error begins with cannot.
func ParseBetween(least, most int, cannot string) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%q is not a whole number", text)
		}
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%s %s; use %d to %d", text, cannot, least, most)
		}
		return n, nil
	}
}

// ParseTime returns a parser of a run's duration. It is at most 1000h, so that its multiples fit
// into a Duration.
func ParseTime(least time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > 1000*time.Hour {
			return 0, fmt.Errorf("%q is not a duration from %v to 1000h, such as 30s or 2m", text, least)
		}
		return d, nil
	}
}

// ParseSeed reads the seed of an order, or of bytes.
func ParseSeed(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number from 0 to %d", text, uint64(math.MaxUint64))
	}
	return n, nil
}

// ParsePolicy is [holdfast.ParsePolicy] that knows what a misspelt name was likely meant to be, and a mode that stands alone.
func ParsePolicy(text string) (holdfast.Policy, error) {
	p, err := holdfast.ParsePolicy(text)
	if err == nil || strings.ContainsAny(text, "=,") {
		return p, err
	}
	switch text {
	case "buffer", "flush", "sync": // a field without its value
		return p, err
	case "never", "close", "group", "each":
		return p, fmt.Errorf("%q is not a policy; did you mean buffer=64KiB,sync=%s?", text, text)
	}
	if near := humanize.Near(text, []string{"unbuffered", "durable", "eachdurable", "buffered=64KiB", "periodic=1s"}); near != "" {
		return p, fmt.Errorf("%q is not a policy; did you mean %s?", text, near)
	}
	return p, err
}

// ParseShare returns a parser of percentages: 5% or 0.05.
func ParseShare(noun string) func(string) (float64, error) {
	return func(text string) (float64, error) {
		number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a share such as 5%% or 0.05", text)
		}
		if isPercent {
			x /= 100
		} else if x == 1 {
			return 0, fmt.Errorf("a %s of 1 means 100%%; write 100%%, or 1%%", noun)
		} else if x > 1 && x <= 100 {
			return 0, fmt.Errorf("a %s of %s means %g%%, and the most is 100%%; did you mean %[2]s%%?", noun, text, 100*x)
		}
		if !(x >= minShare && x <= 1) {
			return 0, fmt.Errorf("a %s of %s is not possible; use 0.1%% to 100%%", noun, text)
		}
		return x, nil
	}
}

// minShare is less than any machine can measure.
const minShare = 0.001

// NoArguments refuses arguments to a command that takes none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Misuse(SeeHelp(cmd), "%s takes no arguments, but %q was given", cmd.Name(), args[0])
}

// SeeHelp is the hint that names the help of a command.
func SeeHelp(cmd *cobra.Command) string {
	return fmt.Sprintf("%s --help shows the flags", cmd.CommandPath())
}

// FlagError returns an error of a flag in plain words.
func FlagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return Misuse(SeeHelp(cmd), "--%s: %w", value.GetFlag().Name, value.Unwrap())
	}
	hint := SeeHelp(cmd)
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		if letters := unknown.GetSpecifiedShortnames(); len(letters) > 1 { // a long flag with one dash
			name, _, _ = strings.Cut(letters, "=")
		}
		if near := nearFlags(cmd, name); len(near) > 0 && len(name) > 1 {
			hint = fmt.Sprintf("did you mean --%s?", near[0])
		}
	}
	return Misuse(hint, "%w", err)
}

// nearFlags returns the flag that differs by a swap of two letters, else the flags that cobra would
// suggest, if they were commands. cobra counts a swap as two different letters: too many for a
// short name.
func nearFlags(cmd *cobra.Command, name string) []string {
	for i := range max(1, len(name)) - 1 {
		swapped := name[:i] + name[i+1:i+2] + name[i:i+1] + name[i+2:]
		if f := cmd.Flags().Lookup(swapped); f != nil && !f.Hidden {
			return []string{swapped}
		}
	}
	for _, known := range ours(strings.ToLower(name)) {
		if f := cmd.Flags().Lookup(known); f != nil {
			return []string{f.Name}
		}
	}
	flags := &cobra.Command{SuggestionsMinimumDistance: min(2, (len(name)+1)/3)} // different letters
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	return flags.SuggestionsFor(name)
}

// ours returns our name of a flag that other programs call so: not every command has each.
func ours(name string) []string {
	switch name {
	case "port", "addr", "address", "bind":
		return []string{"listen"}
	case "format":
		return []string{"export"}
	case "out", "file":
		return []string{"output"}
	case "verbose":
		return []string{"all"}
	case "duration", "runtime":
		return []string{"time"}
	case "directory":
		return []string{"dir"}
	case "bs", "size", "record-size", "block-size":
		return []string{"record"}
	case "threads", "numjobs", "jobs", "goroutines", "concurrency":
		return []string{"writers", "workers"}
	case "buffer", "sync", "flush", "fsync":
		return []string{"policy"}
	}
	return nil
}

// Given returns a text that is not empty, or an error.
func Given(text string) (string, error) {
	if text == "" {
		return "", errors.New("a name is missing")
	}
	return text, nil
}

// NewFile parses the name of a new file. "-" is refused, because it means a stream to many
// programs.
func NewFile(text string) (string, error) {
	if text == "-" {
		return "", errors.New("- is not a file; leave the flag out for standard output, or name a file (./- for a file named -)")
	}
	return Given(text)
}

// NewLines is NewFile for lines of JSON. It refuses the name of an HTML page; report makes a page
// of the lines.
func NewLines(report string) func(text string) (string, error) {
	return func(text string) (string, error) {
		if end := filepath.Ext(text); end == ".csv" || end == ".md" {
			return "", fmt.Errorf("%s: the results are lines of JSON; name them .jsonl (holdfast report --export makes CSV and Markdown of a run)", Visible(OneLine(text)))
		}
		if strings.HasSuffix(text, ".html") {
			return "", fmt.Errorf("the results are lines of JSON, not a page; name them .jsonl, then holdfast report %s -o %s makes the page", report, Visible(OneLine(text)))
		}
		return NewFile(text)
	}
}
