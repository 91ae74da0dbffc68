package recorded

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A growth is how the time of one unit grew with the amount of one kind of work.
type growth struct {
	work    string
	slope   float64
	amounts [][]string // amount, time of a unit, slope from the row above, memory
}

// slopeOf is in the line above a table of kind slopes.
var slopeOf = regexp.MustCompile(`^## (.+), slope (-?[0-9.]+)$`)

func isAmount(cell string) bool {
	_, err := strconv.Atoi(strings.TrimSpace(cell))
	return err == nil
}

// slopesTable has a row for each kind of work that grows: of the machine where its slope is the steepest.
func slopesTable(all []machine) string {
	var text strings.Builder
	text.WriteString("| grows | from, to | slope | first, last unit | steepest step | memory at the end |\n|---|--:|--:|--:|--:|--:|\n")
	var works []string
	steepest := map[string]growth{}
	for _, m := range all {
		for _, g := range m.grown {
			worst, known := steepest[g.work]
			if !known {
				works = append(works, g.work)
			}
			if !known || g.slope > worst.slope {
				steepest[g.work] = g
			}
		}
	}
	for _, work := range works {
		g := steepest[work]
		first, last := g.amounts[0], g.amounts[len(g.amounts)-1]
		fmt.Fprintf(&text, "| %s | %s, %s | %.2f | %s, %s | %s | %s |\n", work, power(first[0]), power(last[0]), g.slope, first[1], last[1], g.step(), last[3])
	}
	return text.String()
}

// step names the amount at which the time of a unit grew the most against the one before.
func (g growth) step() string {
	most, at := 0.0, ""
	for _, row := range g.amounts {
		if x, err := strconv.ParseFloat(strings.TrimSpace(row[2]), 64); err == nil && x > most {
			most, at = x, row[0]
		}
	}
	if at == "" {
		return "–"
	}
	return fmt.Sprintf("%.2f, to %s", most, power(at))
}

// power writes a power of ten from ten thousand on as one.
func power(amount string) string {
	digits := strings.TrimSpace(amount)
	if zeros := strings.TrimPrefix(digits, "1"); len(zeros) >= 4 && strings.Trim(zeros, "0") == "" {
		return "10" + strings.NewReplacer("4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(strconv.Itoa(len(zeros)))
	}
	return digits
}
