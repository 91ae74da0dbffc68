package machine

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/mountinfo"
)

func (h host) memory() []Fact {
	const file = "/proc/meminfo"
	text, _ := h.text(file)
	return []Fact{
		memoryFact("memory", file+" MemTotal", colonField(text, "MemTotal")),
		memoryFact("memory available", file+" MemAvailable", colonField(text, "MemAvailable")),
		h.swap(),
	}
}

// memoryFact reads meminfo's "12345 kB", where kB is 1024 bytes.
func memoryFact(name, source, value string) Fact {
	n, ok := kilobytes(value)
	return known(name, formatBytes(n), source, ok)
}

func kilobytes(value string) (bytes int64, ok bool) {
	return scaled(strings.TrimSuffix(value, " kB"), 1024)
}

// swap lists the swap areas; the columns are name, type and size in KiB.
func (h host) swap() Fact {
	const name, file = "swap", "/proc/swaps"
	text, _ := h.text(file)
	header, rest, _ := strings.Cut(text, "\n")
	var areas []string
	for line := range strings.Lines(rest) {
		columns := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }) // a name may have other white space
		if len(columns) < 3 {
			continue
		}
		if size, ok := kilobytes(columns[2]); ok {
			areas = append(areas, fmt.Sprintf("%s (%s)", mountinfo.Unescape(columns[0]), formatBytes(size)))
		}
	}
	if len(areas) == 0 {
		areas = []string{"none"}
	}
	return known(name, strings.Join(areas, ", "), file, strings.HasPrefix(header, "Filename"))
}

// formatBytes writes a number of bytes with one digit after the point.
func formatBytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
