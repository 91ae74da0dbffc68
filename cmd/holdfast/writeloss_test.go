package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// linesOver returns lines of 100 bytes for files in turn.
func linesOver(lines, files int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%03d %095d\n", i%files, i)
	}
	return b.String()
}

// TestTotalsStateTheLossOfAllFiles spreads lines over 500 files: each may lose what the
// policy allows one, and all together no more than memory holds.
func TestTotalsStateTheLossOfAllFiles(t *testing.T) {
	isolate.Once(t, isolate.Ordinary)
	t.Parallel()
	input := linesOver(500, 500)
	check := func(bytes int64, sentence string, args ...string) {
		t.Helper()
		args = append([]string{"write", "--split", "1", "--out", filepath.Join(t.TempDir(), "{}")}, args...)
		var text, object strings.Builder
		if err := runCommand(t.Context(), args, strings.NewReader(input), &text, io.Discard); err != nil {
			t.Fatal(err)
		}
		if want := "possible loss while it ran, if the process had died: " + sentence + ";"; !strings.Contains(text.String(), want) {
			t.Errorf("%q: the totals lack %q:\n%s", args, want, text.String())
		}
		args[4] = filepath.Join(t.TempDir(), "{}")
		if err := runCommand(t.Context(), append(args, "--json"), strings.NewReader(input), &object, io.Discard); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Bytes *int64 `json:"lost_when_process_dies_bytes"`
			Words string `json:"lost_when_process_dies"`
		}
		if err := json.Unmarshal([]byte(object.String()), &got); err != nil || got.Bytes == nil || *got.Bytes != bytes || got.Words != sentence {
			t.Errorf("%q: want %d bytes, %q in\n%s", args, bytes, sentence, object.String())
		}
	}
	check(500*2*64<<10, "up to 64000KiB", "--policy", "buffer=64KiB,sync=never")
	check(64<<20, "the last 1s + one flush, up to 64MiB", "--policy", "buffer=256KiB,sync=1s")
	check(0, "nothing", "--policy", "sync=never")
	check(0, "nothing", "--policy", "buffer=64KiB,sync=group")
}

// TestKilledWriteLosesNoMoreThanItsTotalsAllow kills write when it has taken all lines
// and waits for more. Its files lack no more than the totals of the same run would have stated.
func TestKilledWriteLosesNoMoreThanItsTotalsAllow(t *testing.T) {
	const many = 500
	check := func(policy string) {
		t.Helper()
		dir := t.TempDir()
		cmd, stdin, _, stderr := piped(t, dir, "--out", "{}", "--split", "1", "--policy", policy)
		// A line that is longer than the buffer bypasses it to its file, which is a
		// directory. When that is reported, every line before it was taken.
		if err := os.Mkdir(filepath.Join(dir, "last"), 0o777); err != nil {
			t.Fatal(err)
		}
		sent := linesOver(150_000, many)
		if _, err := io.WriteString(stdin, sent+"last "+strings.Repeat("x", 1<<20)+"\n"); err != nil {
			t.Fatal(err)
		}
		for reported := bufio.NewScanner(stderr); !strings.Contains(reported.Text(), "last"); {
			if !reported.Scan() {
				t.Fatal("it ended by itself")
			}
		}
		cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		there := int64(0)
		for i := range many {
			if info, err := os.Stat(filepath.Join(dir, fmt.Sprintf("%03d", i))); err == nil {
				there += info.Size()
			}
		}
		var p holdfast.Policy
		if err := p.UnmarshalText([]byte(policy)); err != nil {
			t.Fatal(err)
		}
		bound := files.Options{Policy: p}.Loss(many).Process.Bytes
		one := p.Loss().Process.Bytes
		lost := int64(len(sent)) - there
		t.Logf("%s: %d bytes sent, %d lost; stated %v, of one file %v", policy, len(sent), lost, bound, one)
		if lost > int64(bound) {
			t.Errorf("%s: %d bytes of %d are gone, and %v were stated", policy, lost, len(sent), bound)
		}
		if p.Buffer > 0 && lost <= int64(one) {
			t.Errorf("%s: %d bytes are gone, no more than of one file: this proves nothing", policy, lost)
		}
	}
	check("buffer=64KiB,sync=never")
	check("buffer=4KiB,sync=never")
	check("sync=never")
}
