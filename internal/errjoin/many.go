package errjoin

import (
	"fmt"
	"strings"
)

// MostLines is the most lines in the text of a Many.
const MostLines = 10

// A Many is the errors of many files. Its text names the first ones, and how many there are besides.
type Many struct {
	N    int     // how many there are
	Errs []error // the first ones, or all
	Head string  // the first line, or ""
}

// Err returns the Many, or nil if no error is in it.
func (m *Many) Err() error {
	if m.N == 0 {
		return nil
	}
	return m
}

// Unwrap returns the errors.
func (m *Many) Unwrap() []error { return m.Errs }

// Error returns the text.
func (m *Many) Error() string {
	var lines []string
	if m.Head != "" {
		lines = append(lines, m.Head)
	}
	for i, err := range m.Errs {
		if left := m.N - i; left > 1 && len(lines) == MostLines-1 {
			lines = append(lines, fmt.Sprintf("and %d more", left))
			break
		}
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}
