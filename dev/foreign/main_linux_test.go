package main

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/isolate"
)

func TestMain(m *testing.M) { os.Exit(isolate.Tests{M: m}.Run()) }

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

// documented returns the lines of the table in docs/file-systems.md, its head among them.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/file-systems.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), head()+"\n")
	if !found {
		t.Fatalf("docs/file-systems.md has no table with this head; run go -C dev run ./foreign, and copy what it prints:\n%s", head())
	}
	table, _, _ = strings.Cut(table, "\n\n")
	return strings.Split(table, "\n")
}

// TestTheDocumentHasEachFileSystem once, with an answer in each column, and none that lost something.
func TestTheDocumentHasEachFileSystem(t *testing.T) {
	rows := documented(t)
	all := grounds()
	if len(rows) != len(all) {
		t.Fatalf("%d rows, and %d file systems", len(rows), len(all))
	}
	for i, row := range rows {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		if name := strings.TrimSpace(cells[0]); name != all[i].name || len(cells) != 1+len(columns()) {
			t.Errorf("row %d is of %q, with %d cells; want %q, with %d", i+1, name, len(cells), all[i].name, 1+len(columns()))
		}
		for _, cell := range cells {
			if cell = strings.TrimSpace(cell); cell == "" || cell == isLost {
				t.Errorf("row %d has %q in a cell", i+1, cell)
			}
		}
	}
}

// TestFileSystemsInProcessesHoldWhatTheDocumentSays: a file system that answers is run, and makes its row.
func TestFileSystemsInProcessesHoldWhatTheDocumentSays(t *testing.T) {
	rows := documented(t)
	isolate.Mounts(t, func(t *testing.T) {
		ran := 0
		for i, g := range grounds() {
			if g.name != "bindfs" && g.name != "exFAT (exfat-fuse)" {
				continue
			}
			row, _, err := g.judge(true)
			if err != nil {
				t.Logf("%s: %v", g.name, err)
				continue
			}
			if ran++; row != rows[i] {
				t.Errorf("%s\nthe document says\n%s", row, rows[i])
			}
		}
		if ran == 0 {
			t.Skip("no file system in a process can be mounted here")
		}
	})
}
