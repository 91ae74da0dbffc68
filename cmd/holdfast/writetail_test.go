package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// writeTo runs write with lines, and returns what was said, and the totals.
func writeTo(t *testing.T, lines string, args ...string) (healed int64, acks, reported string, err error) {
	t.Helper()
	var stdout, stderr strings.Builder
	err = runCommand(t.Context(), append([]string{"write", "-a", "--json"}, args...), strings.NewReader(lines), &stdout, &stderr)
	text := stdout.String()
	at := strings.Index(text, "{")
	if at < 0 {
		return 0, text, stderr.String(), err
	}
	var totals struct {
		Healed  int64 `json:"healed"`
		Lines   int64
		Written int64 `json:"written_lines"`
	}
	if err := json.Unmarshal([]byte(text[at:]), &totals); err != nil {
		t.Fatal(err)
	}
	if err == nil && totals.Lines != totals.Written {
		t.Errorf("%+v", totals)
	}
	return totals.Healed, text[:at], stderr.String(), err
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestTornLastLineIsEndedBeforeMoreIsAppended(t *testing.T) {
	t.Parallel()
	check := func(old, lines, want string, healed int64, args ...string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "f")
		mustWrite(t, file, old)
		got, acks, reported, err := writeTo(t, lines, append(args, "--out", file)...)
		if text := mustRead(t, file); text != want || got != healed || err != nil {
			t.Errorf("%q %q after %q: the file holds %q, healed %d, %v", args, lines, old, text, got, err)
		}
		if reported != "" {
			t.Errorf("%q after %q: stderr:\n%s", lines, old, reported)
		}
		if n := strings.Count(lines, "\n"); len(acks) > 0 && !strings.HasSuffix("\n"+acks, fmt.Sprintf("\n%d\n", n)) {
			t.Errorf("%d lines are acknowledged as %q", n, acks)
		}
		// Another run has nothing to end.
		if got, _, _, err := writeTo(t, "more\n", append(args, "--out", file)...); got != 0 || err != nil || mustRead(t, file) != want+"more\n" {
			t.Errorf("a run more: healed %d, %v, %q", got, err, mustRead(t, file))
		}
	}
	for _, policy := range []string{"sync=never", "sync=each", "buffer=64KiB,sync=group", "buffer=64KiB,sync=never", "buffer=4KiB,flush=1ms,sync=1s"} {
		check("a\nb\ntor", "c\nd\n", "a\nb\ntor\nc\nd\n", 1, "--policy", policy)
		check("\n\x00", "c\n", "\n\x00\nc\n", 1, "--policy", policy)
		check("a\nb\n", "c\nd\n", "a\nb\nc\nd\n", 0, "--policy", policy)
		check("", "c\nd\n", "c\nd\n", 0, "--policy", policy)
	}
	check("tor", "c\nd\n", "tor\nc\nd\n", 1, "--policy", "sync=group", "--ack")
	check("tor", "c\nd\n", "tor\nc\nd\n", 1, "--policy", "sync=each", "--ack")
}

// TestTornFileIsHealedOnceForAllItsNames gives one file three names in one batch.
func TestTornFileIsHealedOnceForAllItsNames(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"sync=never", "buffer=64KiB,sync=never", "sync=group", "sync=each"} {
		dir := t.TempDir()
		in := func(name string) string { return filepath.Join(dir, name) }
		mustWrite(t, in("00"), "tor")
		if err := os.Link(in("00"), in("01")); err != nil {
			t.Skip(err)
		}
		isolate.Symlink(t, "00", in("02"))
		var lines strings.Builder
		for i := range 400 {
			fmt.Fprintf(&lines, "%02d %d\n", i%40, i)
		}
		healed, _, _, err := writeTo(t, lines.String(), "--out", in("{}"), "--split", "1", "--policy", policy)
		if err != nil || healed != 1 {
			t.Errorf("%s: healed %d, %v", policy, healed, err)
		}
		for name, want := range map[string]int{"00": 31, "03": 10} {
			text := mustRead(t, in(name))
			if got := strings.Count(text, "\n"); got != want || strings.Contains(text, "\n\n") || name == "00" && !strings.HasPrefix(text, "tor\n0") {
				t.Errorf("%s: %s holds\n%s", policy, name, text)
			}
		}
	}
}

// TestKilledRunIsGoneOnWith kills write again and again while it appends to the same
// files. Nobody can make a kill tear a line, so each file is also cut in mid-line.
func TestKilledRunIsGoneOnWith(t *testing.T) {
	dir := t.TempDir()
	for kill := range 4 {
		cmd, stdin, stdout, _ := piped(t, dir, "-a", "--out", "{}", "--split", "2", "--policy", "buffer=64KiB,sync=group", "--ack")
		go numbered(stdin, 1<<62, nil)
		for acks := range 8 {
			var n int64
			if _, err := fmt.Fscan(stdout, &n); err != nil {
				t.Fatal(acks, err)
			}
		}
		cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		for i := range 5 {
			file := filepath.Join(dir, fmt.Sprint(i))
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, info.Size()-int64(kill%2+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	healed, _, _, err := writeTo(t, "0 last\n1 last\n2 last\n3 last\n4 last\n", "--out", filepath.Join(dir, "{}"), "--split", "1")
	if healed != 5 || err != nil {
		t.Errorf("healed %d, %v", healed, err)
	}
	for i := range 5 {
		text := mustRead(t, filepath.Join(dir, fmt.Sprint(i)))
		torn := 0
		for line := range strings.Lines(text) {
			if _, whole := numberOf(line); !whole && line != fmt.Sprintf("%d last\n", i) {
				torn++
			}
		}
		// The line that was cut is torn, and no other is glued to it.
		if torn > 4 || strings.Contains(text, "\n\n") || !strings.HasSuffix(text, fmt.Sprintf("\n%d last\n", i)) {
			t.Errorf("file %d: %d torn lines", i, torn)
		}
	}
}

func TestInputIsNoOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	const lines = "1 a\n2 b\n"
	mustWrite(t, in("1"), lines)
	if err := os.Link(in("1"), in("hard")); err != nil {
		t.Skip(err)
	}
	isolate.Symlink(t, "1", in("soft"))
	check := func(args ...string) {
		t.Helper()
		input, err := os.Open(in("1"))
		if err != nil {
			t.Fatal(err)
		}
		defer input.Close()
		err = runCommand(t.Context(), append([]string{"write", "-a"}, args...), input, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "is also the standard input") || mustRead(t, in("1")) != lines {
			t.Errorf("%q: %v; the input holds %q", args, err, mustRead(t, in("1")))
		}
		if code := cli.Report(io.Discard, err); code != cli.ExitNotMet {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
	check("--out", in("1"))
	check("--out", in("soft"))
	check("--out", in("hard"))
	check("--out", in("{}"), "--split", "1")
	check("--out", in("{}"), "--split", "1", "--policy", "sync=group")
}
