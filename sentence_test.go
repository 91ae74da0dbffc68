package holdfast_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mostWords bounds a sentence of a comment or a page. docs/measured is made of results, and testdata is golden.
const mostWords = 25

var notSentences = regexp.MustCompile(`(^|/)testdata/|^docs/measured/`)

func TestSentencesAreShort(t *testing.T) {
	files, err := exec.Command("git", "ls-files", "*.go", "*.md").Output()
	if err != nil {
		t.Skip("not a clone of the repository:", err)
	}
	for name := range strings.FieldsSeq(string(files)) {
		text, err := os.ReadFile(name)
		if err != nil || notSentences.MatchString(name) {
			continue // removed and not committed yet, or left out
		}
		for _, s := range longSentences(name, string(text)) {
			t.Errorf("%s: a sentence of %d words, of at most %d: %s", name, len(strings.Fields(s)), mostWords, s)
		}
	}
}

var (
	// item begins an item of a list, a heading or a table's row.
	item = regexp.MustCompile(`^\s*([-*#|>]|[0-9]+\.)\s`)
	// sentenceEnd is a mark, a space, and a capital, a digit or a quote. It is also what separates cells, or items in a line.
	sentenceEnd = regexp.MustCompile("[.!?:][\"'`)*\\]]*\\s+[\"'`(*\\[<]*[A-Z0-9\"`]|\\s[|·](\\s|$)")
	// comment is a line of one, or one behind code. It is no code itself, which a tab indents.
	comment = regexp.MustCompile(`^(.*\s)?// ?([^\t\s].*|  +\S.*)$`)
)

// longSentences returns the sentences of more words than mostWords, in a page, or in a source's comments.
func longSentences(name, text string) (long []string) {
	paragraph, code, made, behindCode := "", false, false, false
	end := func() {
		if strings.HasPrefix(strings.TrimSpace(paragraph), "Output:") {
			paragraph = ""
		}
		for start := 0; paragraph != ""; {
			at := sentenceEnd.FindStringIndex(paragraph[start:])
			if at == nil {
				at = []int{len(paragraph) - start, len(paragraph) - start}
			}
			if s := paragraph[start : start+at[0]]; len(strings.Fields(s)) > mostWords {
				long = append(long, strings.TrimSpace(s))
			}
			if start += at[1]; start == len(paragraph) {
				paragraph = ""
			}
		}
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if filepath.Ext(name) == ".go" {
			m := comment.FindStringSubmatch(line)
			if line = ""; m != nil {
				line = m[2]
			}
			if behind := m != nil && strings.TrimSpace(m[1]) != ""; m == nil || behind || behindCode {
				end()
				behindCode = behind
			}
		} else if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code, line = !code, ""
		} else if strings.Contains(line, ":begin -->") || strings.Contains(line, ":end -->") { // made by a command
			made, line = strings.Contains(line, ":begin -->"), ""
		}
		if code || made || strings.TrimSpace(line) == "" || item.MatchString(line) {
			end()
		}
		if !code && !made {
			paragraph += " " + item.ReplaceAllString(line, "")
		}
	}
	end()
	return long
}

func TestLongSentencesAreFound(t *testing.T) {
	words := strings.Repeat("word ", mostWords-1)
	check := func(name, text string, want int) {
		t.Helper()
		if got := longSentences(name, text); len(got) != want {
			t.Errorf("%d long sentences in %q, want %d: %q", len(got), text, want, got)
		}
	}
	for _, end := range []string{". Next", "? `next`", ": \"next\"", ".** Next"} {
		check("a.md", words+"end"+end+" one.", 0)
		check("a.md", words+"too long"+end+" one.", 1)
		check("a.md", "One"+end+" "+words+"long.", 1)
	}
	check("a.md", words+"word\ntwo.\n\n- "+words+"three.\n| "+words+"| "+words+"|\n```\n"+words+"in code\n```\n"+words+"too long", 2)
	check("a.md", "<!-- x:begin -->\n```\n"+words+"made\n```\n<!-- x:end -->\n"+words+"too long", 1)
	check("a.go", "// "+words+"\n//\n// "+words+"\nf() // "+words+"\n// "+words+"\n//\t"+words+words+"\n", 0)
	check("a.go", "\t// "+words+"\n\t// too long\n\nf() // "+words+"too long\n//   - "+words+"\n//     too long\n", 3)
}
