package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryFaultIsSorted plants faults in a module of its own: one that its test sees, one that it does not
// see, one that ends the test in a goroutine of its own, one whose code is gone, and one that is no Go.
func TestEveryFaultIsSorted(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	patch := func(what, from, to string) string {
		return what + ".\ntests: ./\n--- a/sum.go\n+++ b/sum.go\n@@ -1,6 +1,6 @@\n package sum\n \n // Sum adds.\n func Sum(a, b int) int {\n-\t" + from + "\n+\t" + to + "\n }\n"
	}
	for name, text := range map[string]string{
		filepath.Join(root, "go.mod"):              "module example.com/sum\n\ngo 1.24\n",
		filepath.Join(root, "sum.go"):              "package sum\n\n// Sum adds.\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n",
		filepath.Join(root, "sum_test.go"):         "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Error(Sum(1, 2))\n\t}\n}\n",
		filepath.Join(dir, "sum", "seen.patch"):    patch("It subtracts", "return a + b", "return a - b"),
		filepath.Join(dir, "sum", "turned.patch"):  patch("It adds the other way round", "return a + b", "return b + a"),
		filepath.Join(dir, "sum", "panics.patch"):  patch("It panics in another goroutine", "return a + b", "go func() { panic(a) }(); select {}"),
		filepath.Join(dir, "sum", "gone.patch"):    patch("It multiplies", "return a ^ b", "return a * b"),
		filepath.Join(dir, "sum", "invalid.patch"): patch("It is no Go", "return a + b", "return a plus b"),
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	var out strings.Builder
	ok, err := run(&out, root, dir, 0, 1, "", planter.plant)
	if err != nil || !ok {
		t.Fatalf("run = %v, %v, want that one of twenty may survive:\n%s", ok, err, out.String())
	}
	for _, want := range []string{"caught    sum/seen: TestSum\n", "survived  sum/turned: It adds the other way round.\n", "not known sum/invalid: it can't be built",
		"caught    sum/panics: panic: 1\n", "no longer applies: sum/gone\n", "2 of 3 faults caught (seed 1); 4 patches apply, 1 no longer\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}

func TestEveryPatchIsRead(t *testing.T) {
	files, err := filepath.Glob("*/*.patch")
	if err != nil || len(files) == 0 {
		t.Fatalf("no patches: %v", err)
	}
	for _, file := range files {
		if m, err := read(".", file); err != nil {
			t.Error(err)
		} else if len(m.files) == 0 {
			t.Errorf("%s changes no file", file)
		}
	}
}
