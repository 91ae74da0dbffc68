// Command skips reads the output of go test -json, and prints what go test without -json would
// print. For each skipped test it appends a line to a file, with the reason. It writes another file
// with a line for each failed test: the package, the test, and the pattern that runs it alone. A
// line with the package alone stands for all its tests: they ended too early to know which of them
// failed. To a third file it appends a line for each test that ran to its end. A test that one step
// of check skips may run in another.
//
//	go test -json ./... | skips skipped.txt failed.txt ran.txt
//
// Its exit code reports only its own failures; go test's own says whether the tests passed (set -o
// pipefail).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | skips skipped failed ran")
		os.Exit(2)
	}
	if err := run(os.Stdin, os.Stdout, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, skipped, failed, ran string) (err error) {
	open := func(name string, flag int) *os.File {
		f, failure := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|flag, 0o666)
		err = errors.Join(err, failure)
		return f
	}
	s, f, r := open(skipped, os.O_APPEND), open(failed, os.O_TRUNC), open(ran, os.O_APPEND)
	if err == nil {
		err = translate(in, out, s, f, r)
	}
	for _, file := range []*os.File{s, f, r} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// An event is a line of go test -json: see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A key names a test, or a package where Test is empty.
type key struct{ pkg, test string }

// outputs keeps what tests that have not yet passed said, in the order in which
// they first spoke.
type outputs struct {
	order  []key
	lines  map[key][]string
	failed []key
}

func (o *outputs) add(k key, line string) {
	if _, known := o.lines[k]; !known {
		o.order = append(o.order, k)
	}
	o.lines[k] = append(o.lines[k], line)
}

func (o *outputs) drop(k key) {
	delete(o.lines, k)
	o.order = slices.DeleteFunc(o.order, func(other key) bool { return other == k })
}

// ofPackage returns the keys of a package's tests, and its own.
func (o *outputs) ofPackage(pkg string) (keys []key) {
	for _, k := range o.order {
		if k.pkg == pkg {
			keys = append(keys, k)
		}
	}
	return keys
}

// translate copies the packages' own lines and the output of failed tests to
// out, and the names of tests to skipped, failed and ran. A line that is no event (a linker's
// warning, say) goes to out as it is.
func translate(in io.Reader, out, skipped, failed, ran io.Writer) error {
	said := &outputs{lines: map[key][]string{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if err := handle(line, said, out, skipped, failed, ran); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func handle(line string, said *outputs, out, skipped, failed, ran io.Writer) error {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		_, err := io.WriteString(out, line)
		return err
	}
	k := key{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		_, err := io.WriteString(out, e.Output)
		return err
	case e.Action == "output":
		said.add(k, e.Output)
		return nil
	case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		return closePackage(k, e.Action, said, out, failed)
	case e.Action == "skip":
		_, err := fmt.Fprintf(skipped, "%s %s: %s\n", e.Package, e.Test, reason(said.lines[k]))
		said.drop(k)
		return err
	case e.Action == "pass":
		said.drop(k)
	case e.Action == "fail":
		said.failed = append(said.failed, k)
	default:
		return nil
	}
	_, err := fmt.Fprintln(ran, e.Package, e.Test)
	return err
}

// closePackage prints the failed tests, the tests still running when the package ended, and then
// the package's own output.
func closePackage(pkg key, action string, said *outputs, out, failed io.Writer) error {
	if action == "fail" {
		if _, err := io.WriteString(failed, said.failures(pkg)); err != nil {
			return err
		}
	}
	var text strings.Builder
	for _, k := range said.ofPackage(pkg.pkg) {
		if k != pkg && action == "fail" {
			text.WriteString(strings.Join(said.lines[k], ""))
		}
	}
	for _, line := range said.lines[pkg] {
		if line != "PASS\n" {
			text.WriteString(line)
		}
	}
	for _, k := range said.ofPackage(pkg.pkg) {
		said.drop(k)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// failures lists the failed tests of a package. A test that says nothing itself failed
// by its subtests, which are listed. Tests that end by themselves print FAIL at the end.
func (o *outputs) failures(pkg key) string {
	var text strings.Builder
	if slices.Contains(o.lines[pkg], "FAIL\n") {
		for _, k := range o.failed {
			within := func(other key) bool { return other.pkg == k.pkg && strings.HasPrefix(other.test, k.test+"/") }
			if k.pkg == pkg.pkg && (len(words(o.lines[k])) > 0 || !slices.ContainsFunc(o.failed, within)) {
				var names []string
				for name := range strings.SplitSeq(k.test, "/") {
					names = append(names, "^"+regexp.QuoteMeta(name)+"$")
				}
				fmt.Fprintln(&text, k.pkg, k.test, strings.Join(names, "/"))
			}
		}
	}
	if text.Len() == 0 {
		fmt.Fprintln(&text, pkg.pkg)
	}
	return text.String()
}

// reason picks the words of t.Skip out of a skipped test's output.
func reason(output []string) string {
	if said := words(output); len(said) > 0 {
		return strings.Join(said, " ")
	}
	return "no reason given"
}

// words returns what a test said itself, without what go test says of it.
func words(output []string) (said []string) {
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return said
}
