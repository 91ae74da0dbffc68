package cli

import "testing"

func TestNounsHaveTheirPlurals(t *testing.T) {
	check := func(n int64, noun, want string) {
		t.Helper()
		if got := CountText(n, noun); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(1, "directory", "1 directory")
	check(3, "directory", "3 directories")
	check(0, "file", "0 files")
	check(1234, "line", "1,234 lines")
}

// TestLinesFitTheTerminal: they break at spaces, below the last column.
func TestLinesFitTheTerminal(t *testing.T) {
	check := func(columns int, line, want string) {
		t.Helper()
		if got := folded(line, columns); got != want {
			t.Errorf("%d columns: %q, want %q", columns, got, want)
		}
	}
	check(0, "a b c d e\n", "a b c d e\n")
	check(9, "a b c d e\n", "a b c d e\n")
	check(8, "a b c d e\n", "a b c d\n  e\n")
	check(5, "a b c d e", "a b c\n  d e")
	check(16, "key  two words more\n", "key  two words\n     more\n")
	check(16, "      --flag  say what\n", "      --flag\n      say what\n")
	check(20, "   --flag  say what it is\n", "   --flag  say what\n           it is\n")
	check(24, "  policy  54ns  0  all of it is lost\n", "  policy  54ns  0\n      all of it is lost\n")
	check(24, "  policy  54ns  128KiB  all of what was written is lost\n", "  policy  54ns  128KiB\n      all of what was\n      written is lost\n")
	check(60, "  policy  54ns  0  all of it is lost\n", "  policy  54ns  0  all of it is lost\n")
	check(6, "ab 12 %\n", "ab\n  12 %\n")
	check(6, "/a/long/path and\n", "/a/\n  long/path\n  and\n")
	check(6, "  /a/long/path\n\n", "  /a/\n  long/path\n\n")
}

func TestHelpIsFilledWhereItIsNarrow(t *testing.T) {
	text := "Bench writes files under several\npolicies.\n\nA policy, such as\n  sync  when bytes are made to\n        reach the disk\n  flush the longest\nor a name."
	check := func(columns int, want string) {
		t.Helper()
		if got := filled(text, columns); got != want {
			t.Errorf("in %d columns:\n%s\nwant:\n%s", columns, got, want)
		}
	}
	check(80, text)
	check(20, "Bench writes files\nunder several\npolicies.\n\nA policy, such as\n  sync  when bytes are made to reach the disk\n  flush the longest\nor a name.")
	check(5, "Bench\nwrites\nfiles\nunder\nseveral\npolicies.\n\nA\npolicy,\nsuch\nas\n  sync  when bytes are made to reach the disk\n  flush the longest\nor a\nname.")
}
