package compare

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
)

// TestComparedResultsHaveALimitTogether: the second is refused before all of it is read, so its damaged end is not seen.
func TestComparedResultsHaveALimitTogether(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, trials int, end string) string {
		var b bytes.Buffer
		b.WriteString(`{"kind":"header","schema_version":3,"cells":[{"name":"c"}]}` + "\n")
		for i := range trials {
			fmt.Fprintf(&b, `{"kind":"trial","cell":"c","round":%d,"records":1,"elapsed_ns":1}`+"\n", i+1)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, append(b.Bytes(), end...), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	check := func(a, b, want string) {
		t.Helper()
		cmd := New()
		cmd.SetArgs([]string{a, b})
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s beside %s: %v, want %q", a, b, err, want)
		}
	}
	large := write("large.jsonl", result.MostTrials-10, "")
	beside := New()
	beside.SetContext(t.Context())
	if _, err := readSide(beside, write("ten.jsonl", 10, ""), "", result.MostTrials-10); err != nil { // to compare that number takes long
		t.Error(err)
	}
	check(large, write("eleven.jsonl", 11, "damaged\n"), "eleven.jsonl: a comparison takes at most 25000 trials in all, and these results have more")
	check(write("more.jsonl", result.MostTrials+1, "damaged\n"), large, "more.jsonl: a comparison takes at most 25000")
}
