package files_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

func newDir() string {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

// A thousand files are written by several goroutines, and become durable together before WriteAll returns.
func ExampleSet_WriteAll() {
	dir := newDir()
	defer os.RemoveAll(dir)
	set, err := files.New(files.Options{Policy: holdfast.Durable()})
	if err != nil {
		log.Fatal(err)
	}
	results, err := set.WriteAll(context.Background(), func(yield func(files.Write) bool) {
		for n := range 1000 {
			w := files.Write{Path: filepath.Join(dir, fmt.Sprintf("page-%d.html", n)), Data: fmt.Appendf(nil, "<p>%d</p>\n", n), Mode: files.Replace}
			if !yield(w) {
				return
			}
		}
	})
	fmt.Println(results, err)
	if err := set.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: 1000 of 1000 files succeeded (100.0 %), 0 failed (0.0 %): 1000 durable; 10890 bytes, 1000 attempts <nil>
}

// One file is replaced: after a crash its name has the old content or the new, whole.
func ExampleSet_WriteFile() {
	dir := newDir()
	defer os.RemoveAll(dir)
	set, err := files.New(files.Options{Policy: holdfast.Durable()})
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close() // nothing was appended by Append
	r, err := set.WriteFile(context.Background(), filepath.Join(dir, "config.json"), []byte(`{"debug": false}`), files.Replace)
	fmt.Println(r.Outcome, err)
	// Output: durable <nil>
}

// A log for each tenant: any number of paths, of which a bounded number is open.
func ExampleSet_Append() {
	dir := newDir()
	defer os.RemoveAll(dir)
	set, err := files.New(files.Options{Policy: holdfast.Durable(), MkdirAll: true, Lines: true})
	if err != nil {
		log.Fatal(err)
	}
	for n, tenant := range []string{"acme", "globex", "acme"} {
		path := filepath.Join(dir, tenant, "events.log")
		if err := set.Append(context.Background(), path, fmt.Appendf(nil, "event %d\n", n)); err != nil { // on nil it is durable
			log.Fatal(err)
		}
	}
	if err := set.Close(); err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "acme", "events.log"))
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// event 0
	// event 2
	// <nil>
}
