package machine

import (
	"fmt"
	"strconv"
	"strings"
)

func (h host) memory() []Fact {
	const file = "/proc/meminfo"
	text, _ := h.text(file)
	return []Fact{
		memoryFact("memory", file+" MemTotal", colonField(text, "MemTotal")),
		memoryFact("memory available", file+" MemAvailable", colonField(text, "MemAvailable")),
	}
}

// memoryFact reads meminfo's "12345 kB", where kB is 1024 bytes.
func memoryFact(name, source, value string) Fact {
	n, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return known(name, formatBytes(n*1024), source, err == nil)
}

// formatBytes writes a number of bytes with one digit behind the point.
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
