//go:build unix

package main

import (
	"strings"
	"testing"
)

func TestEachArmLogsEachRecord(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"--dir", t.TempDir(), "--records", "200", "--rounds", "1", "--goroutines", "1,8"}, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 4+2*18 || !strings.Contains(out.String(), "| slog | 8 | lumberjack |") {
		t.Errorf("%d lines:\n%s", n, &out)
	}
	for _, args := range [][]string{{"--goroutines", "0"}, {"--goroutines", "x"}, {"--records", "3", "--goroutines", "8"}, {"--rounds", "0"}, {"--only", "glog"}, {"--what"}} {
		if err := run(args, &out); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
