package machine

import (
	"math"
	"strconv"
	"strings"
)

// scaled reads a number that is not negative, and returns it times a unit.
func scaled(text string, unit int64) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

// count reads a file that holds one number.
func (h host) count(file string) (int64, bool) {
	text, _ := h.text(file)
	return scaled(text, 1)
}

// wordField returns the value of the first line "key value".
func wordField(text, key string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, key+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
