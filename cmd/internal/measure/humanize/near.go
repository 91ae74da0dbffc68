package humanize

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Near returns the name that was likely meant by a word, or "": the same name in letters of other case, a name
// that begins with the word, or a name that differs in a few letters.
func Near(word string, names []string) string {
	word = strings.ToLower(word)
	for _, name := range names {
		if strings.ToLower(name) == word {
			return name
		}
	}
	const least = 3 // letters of a beginning
	for _, name := range names {
		if len(word) >= least && strings.HasPrefix(strings.ToLower(name), word) {
			return name
		}
	}
	near, most := "", min(2, (utf8.RuneCountInString(word)+1)/3)
	for _, name := range names {
		if d := distance(word, strings.ToLower(name)); d <= most {
			near, most = name, d-1
		}
	}
	return near
}

// DidYouMean returns a hint with the near name, or with all names if there is none.
func DidYouMean(word string, names []string) string {
	if near := Near(word, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "use " + strings.Join(names, ", ")
}

// distance counts the letters that were left out, added, changed, or swapped with the next one: the optimal string
// alignment distance.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range to {
		rows[0][j+1] = j + 1
	}
	for i := range from {
		for j := range to {
			change := rows[i][j]
			if from[i] != to[j] {
				change++
			}
			d := min(rows[i][j+1]+1, rows[i+1][j]+1, change)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(from)][len(to)]
}
