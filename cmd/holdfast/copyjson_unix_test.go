//go:build unix

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopyReportsEachNameInJSON copies files whose names are no UTF-8, and gets them back.
func TestCopyReportsEachNameInJSON(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	names := []string{"plain", "x\x80", "x\x81", "x\uFFFD"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(from, name), nil, 0o666); err != nil {
			t.Skip(err)
		}
	}
	var stdout strings.Builder
	if err := runCommand(t.Context(), []string{"copy", from, to, "--json", "--policy", "sync=never"}, strings.NewReader(""), &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(stdout.String()) {
		var r struct {
			Kind, Source, Destination string
			SourceBytes               []byte `json:"source_base64"`
			DestinationBytes          []byte `json:"destination_base64"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.SourceBytes != nil {
			r.Source, r.Destination = string(r.SourceBytes), string(r.DestinationBytes)
		}
		if r.Kind == "copy" && filepath.Base(r.Source) == filepath.Base(r.Destination) {
			found[filepath.Base(r.Source)] = true
		}
	}
	for _, name := range names {
		if !found[name] {
			t.Errorf("%q is in no line of\n%s", name, stdout.String())
		}
	}
}

// TestGenReportsEachNameInJSON makes files whose names are no UTF-8, and gets them back.
func TestGenReportsEachNameInJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"plain", "x\x80", "x\x81", "x\uFFFD", "\x1b[1m\xff"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			t.Skip(err)
		}
		var stdout strings.Builder
		if err := runCommand(t.Context(), []string{"gen", file, "1kB", "--force", "--json", "--policy", "sync=never"}, nil, &stdout, io.Discard); err != nil {
			t.Fatal(err)
		}
		var r struct {
			File  string
			Bytes []byte `json:"file_base64"`
		}
		if err := json.Unmarshal([]byte(stdout.String()), &r); err != nil {
			t.Fatal(err, stdout.String())
		}
		if r.Bytes != nil {
			r.File = string(r.Bytes)
		}
		if r.File != file {
			t.Errorf("%q is reported as\n%s", file, stdout.String())
		}
	}
}
