package holdfast

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Size is a number of bytes. Its text has a unit: KiB, MiB, GiB and TiB are
// powers of 1024, kB, MB, GB and TB powers of 1000.
type Size int64

// The binary units, as factors: 64 * KiB.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	tib Size = 1 << 40
)

// sizeUnits are the suffixes of a size. The short forms are binary, as for dd(1) and fio.
func sizeUnits() map[string]Size {
	return map[string]Size{
		"": 1, "B": 1,
		"k": KiB, "K": KiB, "KiB": KiB, "kB": 1e3,
		"M": MiB, "MiB": MiB, "MB": 1e6,
		"G": GiB, "GiB": GiB, "GB": 1e9,
		"T": tib, "TiB": tib, "TB": 1e12,
	}
}

// ParseSize reads a whole number of bytes with an optional unit: 4096, 64KiB, 64k or 10MB.
func ParseSize(s string) (Size, error) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	number, unit := s[:digits], s[digits:]
	if number == "" {
		return 0, fmt.Errorf("size %q does not start with a whole number of bytes; write it like 4096, 64KiB or 10MB", s)
	}
	factor, ok := sizeUnits()[unit]
	if unit == "KB" {
		return 0, fmt.Errorf("size %q is not clear, because KB is used for 1000 and for 1024 bytes; write %skB or %sKiB", s, number, number)
	}
	if strings.HasPrefix(unit, ".") {
		return 0, fmt.Errorf("size %q is not a whole number; use a smaller unit, such as 1536 for 1.5KiB", s)
	}
	if !ok {
		return 0, fmt.Errorf("size %q has the unknown suffix %q; use k, KiB, M, MiB, G, GiB, T, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000)", s, unit)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/int64(factor) {
		return 0, fmt.Errorf("size %q is not below 8 EiB", s)
	}
	return Size(n) * factor, nil
}

// String returns the size in the largest binary unit that divides it, so that
// ParseSize(s.String()) == s for every s ≥ 0.
func (s Size) String() string {
	for _, u := range []struct {
		name   string
		factor Size
	}{{"TiB", tib}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}} {
		if s != 0 && s%u.factor == 0 {
			return strconv.FormatInt(int64(s/u.factor), 10) + u.name
		}
	}
	if s == 0 {
		return "0"
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText returns the size as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses text as [ParseSize] does.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := ParseSize(string(text))
	if err == nil {
		*s = v
	}
	return err
}
