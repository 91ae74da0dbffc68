package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/cli"
)

// TestVerdictsHaveAPageOfTheirOwn: it begins with the broken promises, and shows the allowed loss in the verdict's words.
func TestVerdictsHaveAPageOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	proof, site := filepath.Join(dir, "proof.jsonl"), filepath.Join(dir, "proof.html")
	lines := `{"Level":"kill","Workload":"plain","Policy":"buffer=0,sync=each","Control":"correct","Verdict":"held"}
{"Level":"kill","Workload":"append","Policy":"buffer=64KiB,sync=never","Allowed":"up to 1536KiB","Tally":{"States":5,"Acknowledged":9,"Most":{"Bytes":134000}},"Verdict":"held"}
{"Level":"power","FS":"ext4","Workload":"program","Tally":{"States":1,"Acknowledged":3,"Lost":2},"Verdict":"broken","Failure":{"Words":"a record is <i>gone</i>","Log":{"Program":{}}}}
`
	if err := os.WriteFile(proof, []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, int) {
		var out, told bytes.Buffer
		code := cli.Report(&told, cli.Run(t.Context(), New(nil), args, strings.NewReader(""), &out, &told))
		return out.String() + told.String(), code
	}
	if told, code := run(proof); code != cli.ExitUsage || !strings.Contains(told, "verdicts of prove") || !strings.Contains(told, "hint: add -o proof.html") {
		t.Errorf("exit code %d: %s", code, told)
	}
	if told, code := run(proof, "-o", site); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, told)
	}
	text, err := os.ReadFile(site)
	if err != nil {
		t.Fatal(err)
	}
	rest := string(text)
	for _, want := range []string{
		"1 promise held, 1 broken. In 6 crash states, 2 of 12 acknowledged records lost.",
		"power ext4, program under its own promise broke its promise: a record is &lt;i&gt;gone&lt;/i&gt;. To repeat it: holdfast prove --replay proof.jsonl:3 --cmd",
		"<h2", "By level", "<title>kill, promise held: 1</title>", "<title>power ext4, promise broken: 1</title>", "<title>kill, control as expected: 1</title>", "1 of 1", "What was proven", "control: loses nothing", "134,000", "up to 1536KiB",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is not there, behind what comes before it:\n%s", want, rest)
		}
		rest = after
	}
}
