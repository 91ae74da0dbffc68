package readahead_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/readahead"
)

// A Reader reads a log by lines of any length, and says what went wrong and where.
func ExampleReader_Lines() {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "events.log")
	if err := os.WriteFile(path, []byte("event 1\nevent 2\r\nno newline"), 0o666); err != nil {
		log.Fatal(err)
	}
	r, err := readahead.Open(path, readahead.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for line, err := range r.Lines() {
		if err != nil { // a *Error; line is the part of the line that broke off
			log.Fatal(err)
		}
		fmt.Printf("%q\n", line)
	}
	// Output:
	// "event 1"
	// "event 2"
	// "no newline"
}

// To look at each byte, range over them: that is a loop over memory.
func ExampleReader_Bytes() {
	r := readahead.NewReader(strings.NewReader("to be or not to be"), readahead.Options{})
	defer r.Close()
	words := 1
	for c := range r.Bytes() {
		if c == ' ' {
			words++
		}
	}
	fmt.Println(words, r.Err())
	// Output: 6 <nil>
}
