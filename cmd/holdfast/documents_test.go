package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// TestCommandsOfDocumentsRun runs the commands in the tables of docs/documents.md in their
// short form. Commands that measure show their plan; commands that make files make small ones. Where that
// would take file systems, other kernels, time or results, its flags are read.
func TestCommandsOfDocumentsRun(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "documents.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	rows := regexp.MustCompile("(?m)^\\|[^|]*\\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(string(text), -1)
	if tables := strings.Count(string(text), "\n| "); len(rows) != tables-strings.Count(string(text), "\n| there |") || len(rows) < 50 {
		t.Errorf("%d of %d rows have one command, how long it takes, and what came out", len(rows), tables)
	}
	made := map[string]bool{} // results that a row above has made
	for _, row := range rows {
		// A row runs as it stands: what a shell would take for itself is quoted, and results are there.
		unquoted := regexp.MustCompile(`'[^']*'`).ReplaceAllString(row[1], "")
		if strings.ContainsAny(unquoted, "<>;&*$`") {
			t.Errorf("a shell reads %s in its own way", row[1])
		}
		for _, m := range regexp.MustCompile(`(-o )?([a-z]+\.jsonl)`).FindAllStringSubmatch(row[1], -1) {
			if made[m[2]] = made[m[2]] || m[1] != ""; !made[m[2]] {
				t.Errorf("no row above makes %s of %s", m[2], row[1])
			}
		}
		words := strings.Fields(strings.ReplaceAll(row[1], "'", ""))
		if words[0] != "holdfast" {
			for _, w := range words[1:] {
				if strings.Contains(w, "/") {
					if _, err := os.Stat(filepath.Join(root, w)); err != nil {
						t.Errorf("%s: %v", row[1], err)
					}
				}
			}
			continue
		}
		args := words[1:]
		has := func(flag string) bool { return strings.Contains(row[1], flag) }
		switch args[0] {
		case "bench", "study", "audit":
			args = append(args, "--dry-run")
		case "gen":
			args[2] = "64KiB"
		}
		if args[0] == "advise" || args[0] == "report" || has("study figures") || has("study times") || args[0] == "write" || has("--fs") || has("--kernel") || has("--diy") || has("--cache") {
			cmd, rest, err := newRoot().Find(words[1:])
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil && cmd.Args != nil {
				err = cmd.Args(cmd, cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %v", row[1], err)
			}
			continue
		}
		var out strings.Builder
		err := cli.Run(t.Context(), newRoot(), args, strings.NewReader(""), &out, io.Discard)
		if errors.Is(err, study.ErrNoArm) && runtime.GOOS != "linux" {
			t.Logf("%s: %v", row[1], err)
		} else if err != nil {
			t.Errorf("%s: %v\n%s", row[1], err, &out)
		}
	}
}
