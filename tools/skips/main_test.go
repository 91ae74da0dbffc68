package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const events = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: needs root\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: chatter\n"}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":0}
# a linker's warning
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.002s\n"}
{"Action":"pass","Package":"p","Elapsed":0.002}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1: oops\n"}
{"Action":"output","Package":"r","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"r","Test":"TestC","Output":"    c_test.go:3: wrong\n"}
{"Action":"output","Package":"r","Test":"TestC","Output":"--- FAIL: TestC (0.00s)\n"}
{"Action":"fail","Package":"r","Test":"TestC","Elapsed":0}
{"Action":"output","Package":"r","Output":"FAIL\n"}
{"Action":"output","Package":"r","Output":"FAIL\tr\t0.002s\n"}
{"Action":"fail","Package":"r","Elapsed":0.002}
{"Action":"output","Package":"s","Output":"?   \ts\t[no test files]\n"}
{"Action":"skip","Package":"s","Elapsed":0}
`

const shown = `# a linker's warning
ok  	p	0.002s
q.go:1: oops
=== RUN   TestC
    c_test.go:3: wrong
--- FAIL: TestC (0.00s)
FAIL
FAIL	r	0.002s
?   	s	[no test files]
`

func TestRunShowsWhatGoTestShowsAndListsSkips(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skipped")
	var out strings.Builder
	if err := run(strings.NewReader(events), &out, path); err != nil {
		t.Fatal(err)
	}
	if out.String() != shown {
		t.Errorf("shown:\n%s\nwant:\n%s", out.String(), shown)
	}
	skipped, err := os.ReadFile(path)
	if want := "p TestA: a_test.go:3: needs root\n"; err != nil || string(skipped) != want {
		t.Errorf("skipped: %q, %v; want %q", skipped, err, want)
	}
}

func TestSkipWithoutAReasonIsToldSo(t *testing.T) {
	if got := reason([]string{"=== RUN   TestA\n", "--- SKIP: TestA (0.00s)\n"}); got != "no reason given" {
		t.Errorf("got %q", got)
	}
}
