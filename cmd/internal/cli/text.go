package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/humanize"
)

// BytesText returns a number of bytes with a binary unit.
func BytesText(n int64) string { return humanize.Bytes(n) }

// Grouped returns a number with commas between its thousands.
func Grouped(n int64) string { return humanize.Grouped(n) }

// FirstOf names the first of any number of directories.
func FirstOf(dirs []string) string {
	text := fmt.Sprintf("%q", dirs[0])
	if len(dirs) > 1 {
		text += fmt.Sprintf(" and %d more", len(dirs)-1)
	}
	return text
}

// CountText returns a number with its noun.
func CountText(n int64, noun string) string {
	if stem, isY := strings.CutSuffix(noun, "y"); isY && n != 1 {
		noun = stem + "ies"
	} else if n != 1 {
		noun += "s"
	}
	return Grouped(n) + " " + noun
}

// NoJournalText is the doubt about durable names: see [files.Result].
const NoJournalText = "caution: a file system there has no journal: if a crash interrupts later work in a directory, names in it that were durable may be lost\n"

// An EndKind is the reason for the end of a run.
type EndKind string

const (
	EndComplete    EndKind = "complete"
	EndInterrupted EndKind = "interrupted"
	EndStopped     EndKind = "stopped"
)

// NotText returns the bytes of a path that is not UTF-8, else nil.
func NotText(path string) []byte {
	if utf8.ValidString(path) {
		return nil
	}
	return []byte(path)
}

// folded breaks lines at spaces to fit columns, and paths that are longer behind a slash, unless a word is longer; 0
// breaks nothing. A
// continued line stands below the line's last column of text. If too few columns are left there,
// the last cell of a table's row gets lines of its own.
func folded(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		rest := []rune(strings.TrimSuffix(line, "\n"))
		hang, from, cells, last := 2, 0, 0, 0
		for i := 2; i < len(rest); i++ {
			if rest[i] == ' ' || rest[i-1] != ' ' || rest[i-2] != ' ' {
				continue
			}
			if cells, last = cells+1, i; i < columns*2/3 {
				hang = i
			}
		}
		if columns > 0 && len(rest) > columns && cells > 2 && last >= columns*2/3 && last <= columns+2 {
			b.WriteString(strings.TrimRight(string(rest[:last]), " ") + "\n")
			hang, from = 6, 6
			rest = []rune(strings.Repeat(" ", hang) + string(rest[last:]))
		}
		for columns > 0 && len(rest) > columns {
			at := -1
			for i := from + 1; i < len(rest) && (i <= columns || at < 0); i++ {
				inText := strings.TrimSpace(string(rest[from:i])) != ""
				if rest[i] == ' ' && inText && (i+1 == len(rest) || rest[i+1] != '%') {
					at = i
				}
			}
			if at < 0 || at > columns { // a long word: a path is broken behind a slash
				if slash := lastSlash(rest[:columns], from); slash > 0 {
					b.WriteString(string(rest[:slash]) + "\n")
					rest = append([]rune(strings.Repeat(" ", hang)), rest[slash:]...)
					from = hang
					continue
				}
			}
			if at < 0 {
				break
			}
			b.WriteString(strings.TrimRight(string(rest[:at]), " ") + "\n")
			rest = []rune(strings.Repeat(" ", hang) + strings.TrimLeft(string(rest[at:]), " "))
			from = hang
		}
		b.WriteString(string(rest))
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// lastSlash returns the place behind the last slash that has a letter between it and from, or 0.
func lastSlash(text []rune, from int) int {
	for i := len(text) - 1; i > from+1; i-- {
		if text[i] == '/' {
			return i + 1
		}
	}
	return 0
}

// OneLine escapes line feeds, so that a name in a text can't begin a line of its own.
func OneLine(text string) string { return strings.ReplaceAll(text, "\n", `\n`) }

// PlainText returns an error's text without the prefix of the library.
func PlainText(err error) string {
	return strings.TrimPrefix(err.Error(), "holdfast: ")
}
