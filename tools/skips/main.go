// Command skips reads the output of go test -json, and prints what go test without
// -json would print. For each skipped test it appends a line to a file, with the
// reason.
//
//	go test -json ./... | skips skipped.txt
//
// Its exit code reports only its own failures: that of go test says whether the tests
// passed (set -o pipefail).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | skips file")
		os.Exit(2)
	}
	if err := run(os.Stdin, os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	err = translate(in, out, f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
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
	order []key
	lines map[key][]string
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
// out, and the skipped tests to skipped. A line that is no event (a linker's
// warning, say) goes to out as it is.
func translate(in io.Reader, out, skipped io.Writer) error {
	said := &outputs{lines: map[key][]string{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if err := handle(line, said, out, skipped); err != nil {
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

func handle(line string, said *outputs, out, skipped io.Writer) error {
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
		return closePackage(k, e.Action, said, out)
	case e.Action == "skip":
		_, err := fmt.Fprintf(skipped, "%s %s: %s\n", e.Package, e.Test, reason(said.lines[k]))
		said.drop(k)
		return err
	case e.Action == "pass":
		said.drop(k)
	}
	return nil
}

// closePackage shows the failed tests, and those that were running when the
// package ended, and then what the package says itself.
func closePackage(pkg key, action string, said *outputs, out io.Writer) error {
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

// reason picks the words of t.Skip out of a skipped test's output.
func reason(output []string) string {
	var words []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- SKIP") || line == "" {
			continue
		}
		words = append(words, line)
	}
	if len(words) == 0 {
		return "no reason given"
	}
	return strings.Join(words, " ")
}
