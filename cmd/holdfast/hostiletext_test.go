package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// hostileNames would set a terminal, forge a line, or turn text around.
var hostileNames = []string{
	"x\x1b]0;pwn\a\x1b[2J", "x\nholdfast: all is well", "x\rholdfast: ", "x\x7f\x08\x08", "x\u009b31m", "x\x9b31m", "x\u202egpj.exe", "x\u2066y",
}

// unsafeIn returns the first thing in a text that no terminal should get.
func unsafeIn(text string) string {
	for i, r := range text {
		if r == utf8.RuneError && text[i] != "\uFFFD"[0] || r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return fmt.Sprintf("%q at %q", r, text[max(0, i-20):min(len(text), i+20)])
		}
		if strings.HasPrefix(text[i:], "\nholdfast: all is well") {
			return "a forged line"
		}
	}
	return ""
}

// wantSafe runs the command and its end, and wants nothing unsafe on either stream.
func wantSafe(t *testing.T, input string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, reported strings.Builder
	err := runCommand(t.Context(), args, strings.NewReader(input), &out, &reported)
	code = cli.Report(&reported, err)
	for name, text := range map[string]string{"stdout": out.String(), "stderr": reported.String()} {
		if what := unsafeIn(text); what != "" {
			t.Errorf("%q: %s has %s", args, name, what)
		}
	}
	return out.String(), reported.String(), code
}

func TestHostileNamesSetNoTerminal(t *testing.T) {
	t.Parallel()
	for _, name := range hostileNames {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in := filepath.Join(dir, name)
			const results = "testdata/none.jsonl"
			if _, reported, code := wantSafe(t, "", "gen", in, "10B"); code != cli.ExitOK {
				t.Skipf("no such name here: %s", reported)
			}
			wantSafe(t, "", "gen", in, "10B")                                 // it is there
			wantSafe(t, "", "gen", in+"/y", "10B")                            // it is no directory
			wantSafe(t, "", "gen", in, name)                                  // no size
			wantSafe(t, "", "gen", filepath.Join(dir, "y"), "10B", "--"+name) // no flag
			wantSafe(t, "a\n", "write", "--out", in)
			wantSafe(t, "a\n", "write", "--out", in+"/y")
			wantSafe(t, "tor", "write", "--out", in+"1")
			wantSafe(t, "a\n", "write", "-a", "--out", in+"1")
			wantSafe(t, name+"\n", "write", "--out", filepath.Join(dir, "{}"), "--split", "1", "--separator", "\t")
			wantSafe(t, "a\n", "write", "--out", filepath.Join(dir, "{}"), "--split", "1", "--separator", name)
			wantSafe(t, "", "report", in)
			wantSafe(t, "", "report", in+"/y")
			wantSafe(t, "", "compare", in, results)
			wantSafe(t, "", "fleet", in)
			wantSafe(t, "", "fleet", results, "--expect", in)
			wantSafe(t, name, "fleet", results, "--expect", "-")
			wantSafe(t, "", "compare", results, "baseline:"+name)
			wantSafe(t, "", "audit", "--from", in)
			wantSafe(t, "", "audit", "--from", in+"y")
			wantSafe(t, "", "audit", "--claim", name)
			wantSafe(t, "", "audit", "--dry-run", "--dir", in)
			wantSafe(t, "", "advise", in, "--need", "loss<=1s")
			wantSafe(t, "", "advise", "--need", name)
			wantSafe(t, "", "copy", in, in+"2", "-v")
			wantSafe(t, "", "copy", in+"none", in+"3")
			wantSafe(t, "", "bench", "--dir", in)
			wantSafe(t, "", "bench", name)
			wantSafe(t, "", "bench", "--policy", name)
			wantSafe(t, "", name)
			if err := os.Mkdir(in+"dir", 0o777); err != nil {
				t.Fatal(err)
			}
			wantSafe(t, "", "volumes", in+"dir")
			wantSafe(t, "", "volumes", in)
			wantSafe(t, "", "volumes", "--clean", in+"dir")
			wantSafe(t, "", "bench", "--dry-run", "--dir", in+"dir")
			wantSafe(t, "", "audit", "--dry-run", "--dir", in+"dir")
		})
	}
}

// TestHostileResultsSetNoTerminal puts hostile texts into each string of results.
func TestHostileResultsSetNoTerminal(t *testing.T) {
	isolate.Once(t)
	t.Parallel()
	good := mustRead(t, "../internal/measure/result/testdata/version1.jsonl")
	names := []string{"<script>alert(1)</script>a`b*c[d](e)|f", hostileNames[0] + hostileNames[3] + hostileNames[4] + hostileNames[6], hostileNames[1]}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		quoted := strings.Trim(fmt.Sprintf("%+q", name), `"`)
		quoted = strings.NewReplacer(`\a`, `\u0007`, `\x1b`, `\u001b`, `\x7f`, `\u007f`, `\x9b`, `\u009b`, `\v`, `\u000b`).Replace(quoted)
		for _, keys := range []string{"study", "question", "dir", "program", "value", "label", "name cell twin_of", "cell", "reason", "system_calls_unseen", "group", "file_system"} {
			file := filepath.Join(t.TempDir(), "hostile.jsonl")
			hostile := good
			for _, key := range strings.Fields(keys) {
				hostile = strings.ReplaceAll(hostile, `"`+key+`":"`, `"`+key+`":"`+quoted)
			}
			mustWrite(t, file, hostile)
			text, reported, _ := wantSafe(t, "", "report", file)
			if strings.HasPrefix(name, "<") && keys == "value" && !strings.Contains(text, "<script>") {
				t.Errorf("%s: the results were not read: %s", keys, reported)
			}
			for _, format := range []string{"csv", "json", "bench"} {
				wantSafe(t, "", "report", file, "--export", format)
				wantSafe(t, "", "compare", file, file, "--export", format)
			}
			markdown, _, _ := wantSafe(t, "", "report", file, "--export", "markdown")
			if strings.Contains(markdown, "<script>") || strings.Contains(markdownHead(markdown), "a`b") || strings.Contains(markdown, "b*c") || strings.Contains(markdown, "c[d]") {
				t.Errorf("%s %q: Markdown has it raw:\n%s", keys, name, markdown)
			}
			page := filepath.Join(t.TempDir(), "page.html")
			wantSafe(t, "", "report", file, "-o", page)
			wantSafe(t, "", "compare", file, file)
			for _, format := range []string{"csv", "json"} {
				wantSafe(t, "", "fleet", file, "--export", format)
			}
			wantSafe(t, "", "fleet", file, "--all")
			wantSafe(t, "", "fleet", file, "-o", page+"2")
			markdown, _, _ = wantSafe(t, "", "fleet", file, "--export", "markdown")
			if strings.Contains(markdown, "<script>") || strings.Contains(markdown, "a`b") || strings.Contains(markdown, "b*c") || strings.Contains(markdown, "c[d]") {
				t.Errorf("%s %q: Markdown of fleet has it raw:\n%s", keys, name, markdown)
			}
			markdown, _, _ = wantSafe(t, "", "compare", file, file, "--export", "markdown")
			if strings.Contains(markdown, "<script>") || strings.Contains(markdownHead(markdown), "a`b") {
				t.Errorf("%s %q: Markdown of compare has it raw:\n%s", keys, name, markdown)
			}
			wantSafe(t, "", "advise", file, "--need", "loss<=1s")
			wantSafe(t, "", "bench", "--from", file, "--dry-run")
			wantSafe(t, "", "bench", "--resume", file, "--dry-run")
		}
	}
}

// TestHugeNumbersTakeNoMemory puts a billion, and more, into each number of results. It runs alone: memory is the program's.
func TestHugeNumbersTakeNoMemory(t *testing.T) {
	isolate.Once(t)
	good := mustRead(t, "../internal/measure/result/testdata/version1.jsonl")
	keys := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z_0-9]+)":-?[0-9]`).FindAllStringSubmatch(good, -1) {
		keys[m[1]] = true
	}
	if len(keys) < 20 {
		t.Fatalf("only the numbers %v", keys)
	}
	dir := t.TempDir()
	taken := map[string]int{}
	file, page := filepath.Join(dir, "huge.jsonl"), filepath.Join(dir, "page.html")
	for key := range keys {
		for _, huge := range []string{"1000000000", "9000000000000000000"} {
			mustWrite(t, file, regexp.MustCompile(`"`+key+`":-?[0-9.e+]+`).ReplaceAllLiteralString(good, `"`+key+`":`+huge))
			for _, args := range [][]string{{"report", file, "-o", page}, {"compare", file, file}, {"fleet", file, "--all"}, {"advise", file, "--need", "loss<=1s"}} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, _, code := wantSafe(t, "", args...)
				runtime.ReadMemStats(&after)
				taken[args[0]] += max(0, 1-code)
				if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
					t.Errorf("%s of %s, %s: %d MiB of memory for a file of %d bytes", key, huge, args[0], took>>20, len(good))
				}
				os.Remove(page)
			}
		}
	}
	t.Logf("%d numbers; read with one of them changed: %v", len(keys), taken)
	if taken["report"] < len(keys) {
		t.Errorf("most are refused: %v", taken)
	}
}

// markdownHead is the text before the tables and the notes. These have code of our own.
func markdownHead(text string) string {
	head, _, _ := strings.Cut(text, "\n#### ")
	return head
}

func TestErrorsSetNoTerminal(t *testing.T) {
	t.Parallel()
	for _, name := range hostileNames {
		for _, err := range []error{
			errors.New(name), fmt.Errorf("x: %w", errors.New(name)), cli.Misuse(name, "%s", name), errors.Join(errors.New(name), errors.New(name)),
		} {
			var reported strings.Builder
			cli.Report(&reported, err)
			if what := unsafeIn(reported.String()); what != "" {
				t.Errorf("%q: %s", name, what)
			}
		}
	}
}
