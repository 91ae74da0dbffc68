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
{"Action":"output","Package":"u","Test":"TestD","Output":"=== RUN   TestD\n"}
{"Action":"output","Package":"u","Test":"TestD/a+b","Output":"=== RUN   TestD/a+b\n"}
{"Action":"output","Package":"u","Test":"TestD/a+b","Output":"    d_test.go:3: wrong\n"}
{"Action":"output","Package":"u","Test":"TestD/a+b","Output":"--- FAIL: TestD/a+b (0.00s)\n"}
{"Action":"fail","Package":"u","Test":"TestD/a+b","Elapsed":0}
{"Action":"output","Package":"u","Test":"TestD","Output":"--- FAIL: TestD (0.00s)\n"}
{"Action":"fail","Package":"u","Test":"TestD","Elapsed":0}
{"Action":"output","Package":"u","Test":"TestE","Output":"=== RUN   TestE\n"}
{"Action":"output","Package":"u","Test":"TestE/sub","Output":"    e_test.go:3: wrong\n"}
{"Action":"fail","Package":"u","Test":"TestE/sub","Elapsed":0}
{"Action":"output","Package":"u","Test":"TestE","Output":"    e_test.go:4: wrong, too\n"}
{"Action":"fail","Package":"u","Test":"TestE","Elapsed":0}
{"Action":"output","Package":"u","Output":"FAIL\n"}
{"Action":"output","Package":"u","Output":"FAIL\tu\t0.002s\n"}
{"Action":"fail","Package":"u","Elapsed":0.002}
{"Action":"output","Package":"v","Test":"TestF","Output":"--- FAIL: TestF (0.00s)\n"}
{"Action":"output","Package":"v","Test":"TestF","Output":"panic: oops\n"}
{"Action":"fail","Package":"v","Test":"TestF","Elapsed":0}
{"Action":"output","Package":"v","Output":"FAIL\tv\t0.002s\n"}
{"Action":"fail","Package":"v","Elapsed":0.002}
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
=== RUN   TestD
--- FAIL: TestD (0.00s)
=== RUN   TestD/a+b
    d_test.go:3: wrong
--- FAIL: TestD/a+b (0.00s)
=== RUN   TestE
    e_test.go:4: wrong, too
    e_test.go:3: wrong
FAIL
FAIL	u	0.002s
--- FAIL: TestF (0.00s)
panic: oops
FAIL	v	0.002s
?   	s	[no test files]
`

const again = `r TestC ^TestC$
u TestD/a+b ^TestD$/^a\+b$
u TestE/sub ^TestE$/^sub$
u TestE ^TestE$
v
`

func TestRunShowsWhatGoTestShowsAndListsSkipsAndFailures(t *testing.T) {
	dir := t.TempDir()
	path, failures, ended := filepath.Join(dir, "skipped"), filepath.Join(dir, "failed"), filepath.Join(dir, "ran")
	var out strings.Builder
	if err := run(strings.NewReader(events), &out, path, failures, ended); err != nil {
		t.Fatal(err)
	}
	if out.String() != shown {
		t.Errorf("shown:\n%s\nwant:\n%s", out.String(), shown)
	}
	skipped, err := os.ReadFile(path)
	if want := "p TestA: a_test.go:3: needs root\n"; err != nil || string(skipped) != want {
		t.Errorf("skipped: %q, %v; want %q", skipped, err, want)
	}
	if failed, err := os.ReadFile(failures); err != nil || string(failed) != again {
		t.Errorf("failed: %q, %v; want %q", failed, err, again)
	}
	ran, err := os.ReadFile(ended)
	if want := "p TestB\nr TestC\nu TestD/a+b\nu TestD\nu TestE/sub\nu TestE\nv TestF\n"; err != nil || string(ran) != want {
		t.Errorf("ran: %q, %v; want %q", ran, err, want)
	}
}

func TestSkipWithoutAReasonIsReported(t *testing.T) {
	if got := reason([]string{"=== RUN   TestA\n", "--- SKIP: TestA (0.00s)\n"}); got != "no reason given" {
		t.Errorf("got %q", got)
	}
}
