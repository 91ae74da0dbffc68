package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// rowOf is set in the child that a test starts in a mount namespace of its own.
const rowOf = "HOLDFAST_FOREIGN_ROW"

// TestMain lets the test binary be that child.
func TestMain(m *testing.M) {
	name := os.Getenv(rowOf)
	if name == "" {
		os.Exit(m.Run())
	}
	for _, g := range grounds() {
		if g.name != name {
			continue
		}
		row, _, err := g.judge(true)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		fmt.Println(row)
	}
	os.Exit(0)
}

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
	if os.Getuid() != 0 {
		t.Skip("it takes root to mount")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, row := range documented(t) {
		name := strings.TrimSpace(strings.Split(row, "|")[1])
		if name != "bindfs" && name != "exFAT (exfat-fuse)" {
			continue
		}
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), rowOf+"="+name)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		var why strings.Builder
		cmd.Stderr = &why
		out, err := cmd.Output()
		if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() == 3 || errors.Is(err, syscall.EPERM) {
			t.Logf("%s: %v %s", name, err, why.String())
			continue
		}
		ran++
		if err != nil || strings.TrimSpace(string(out)) != row {
			t.Errorf("%s: %v\n%s%s\nthe document says\n%s", name, err, why.String(), out, row)
		}
	}
	if ran == 0 {
		t.Skip("no file system in a process can be mounted here")
	}
}
