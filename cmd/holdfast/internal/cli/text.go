package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// BytesText writes a number of bytes with a binary unit.
func BytesText(n int64) string { return humanize.IBytes(uint64(n)) }

// FirstOf names the first of any number of directories.
func FirstOf(dirs []string) string {
	text := fmt.Sprintf("%q", dirs[0])
	if len(dirs) > 1 {
		text += fmt.Sprintf(" and %d more", len(dirs)-1)
	}
	return text
}

// CountText writes a number with its noun.
func CountText(n int64, noun string) string {
	if stem, isY := strings.CutSuffix(noun, "y"); isY && n != 1 {
		noun = stem + "ies"
	} else if n != 1 {
		noun += "s"
	}
	return humanize.Comma(n) + " " + noun
}

// NoJournalText is the doubt about what is durable: see [files.Result].
const NoJournalText = "caution: a file system there has no journal: later work in a directory that a crash interrupts may take away names that were durable\n"

// An EndKind says why a run ended.
type EndKind string

const (
	EndComplete    EndKind = "complete"
	EndInterrupted EndKind = "interrupted"
	EndStopped     EndKind = "stopped"
)

// NotText is a path that is no UTF-8, else nil.
func NotText(path string) []byte {
	if utf8.ValidString(path) {
		return nil
	}
	return []byte(path)
}

// OneLine keeps a name in a text from beginning a line of its own.
func OneLine(text string) string { return strings.ReplaceAll(text, "\n", `\n`) }

// PlainText is an error without the name of the library before it.
func PlainText(err error) string {
	return strings.TrimPrefix(err.Error(), "holdfast: ")
}
