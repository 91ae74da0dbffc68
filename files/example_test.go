package files_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Without a Set: os.WriteFile, with the old file whole or the new one at any crash.
func ExampleWriteFile() {
	dir := newDir()
	defer os.RemoveAll(dir)
	if err := files.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"debug": false}`), 0o644); err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	fmt.Println(string(text), err)
	// Output: {"debug": false} <nil>
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

// A program's state: whatever happens meanwhile, the file holds the state before or the new one, whole.
func ExampleWriteFileFunc() {
	dir := newDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "state.json")
	for n := range 2 {
		err := files.WriteFileFunc(path, 0o600, func(w io.Writer) error {
			return json.NewEncoder(w).Encode(map[string]int{"position": n})
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// {"position":1}
	// <nil>
}

// An export of 2,000 files by a program that makes them one by one. The list of them is written when
// all are durable.
func ExampleBatch_Write() {
	dir := newDir()
	defer os.RemoveAll(dir)
	set, err := files.New(files.Options{Policy: holdfast.Durable()})
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close() // nothing was appended
	b := set.Begin()
	defer b.Discard()
	var list bytes.Buffer
	for n := range 2000 {
		name := fmt.Sprintf("invoice-%04d.xml", n)
		if err := b.Write(filepath.Join(dir, name), fmt.Appendf(nil, "<n>%d</n>\n", n)); err != nil {
			log.Fatal(err)
		}
		fmt.Fprintln(&list, name)
	}
	totals, err := b.Commit(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(totals)
	r, err := set.WriteFile(context.Background(), filepath.Join(dir, "complete"), list.Bytes(), files.Replace)
	fmt.Println(r.Outcome, err)
	// Output:
	// 2000 of 2000 files succeeded (100.0 %), 0 failed (0.0 %): 2000 durable; 22890 bytes, 2000 attempts
	// durable <nil>
}

// extract extracts the directories and files of a tar archive. They are durable when it returns nil.
func extract(ctx context.Context, set *files.Set, dir string, archive io.Reader) (files.Totals, error) {
	b := set.Begin()
	defer b.Discard()
	for in := tar.NewReader(archive); ; {
		header, err := in.Next()
		if err == io.EOF {
			return b.Commit(ctx)
		}
		if err != nil {
			return files.Totals{}, err
		}
		if !filepath.IsLocal(header.Name) {
			return files.Totals{}, fmt.Errorf("%q leads out of the archive", header.Name)
		}
		path, mode := filepath.Join(dir, header.Name), header.FileInfo().Mode().Perm()
		switch header.Typeflag {
		case tar.TypeDir:
			if err = b.Mkdir(path, mode); os.IsExist(err) {
				err = nil
			}
		case tar.TypeReg:
			var p *files.Pending
			if p, err = b.Create(path); err == nil {
				_, err = io.Copy(p, in)
				err = errors.Join(err, p.Chmod(mode))
				if err == nil {
					err = p.Commit(ctx)
				}
				p.Discard()
			}
		default:
			err = fmt.Errorf("%s is neither a file nor a directory", header.Name)
		}
		if err != nil {
			return files.Totals{}, err
		}
	}
}

// An archive is extracted with one sync for all that is in it.
func ExampleSet_Begin() {
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	add := func(h tar.Header, text string) {
		h.Size = int64(len(text))
		if err := out.WriteHeader(&h); err != nil {
			log.Fatal(err)
		}
		io.WriteString(out, text)
	}
	add(tar.Header{Typeflag: tar.TypeDir, Name: "bin", Mode: 0o755}, "")
	add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/run", Mode: 0o755}, "#!/bin/sh\n")
	add(tar.Header{Typeflag: tar.TypeReg, Name: "README", Mode: 0o444}, "read me\n")
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}

	dir := newDir()
	defer os.RemoveAll(dir)
	set, err := files.New(files.Options{Policy: holdfast.Durable()})
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close() // nothing was appended
	fmt.Println(extract(context.Background(), set, dir, &archive))
	text, err := os.ReadFile(filepath.Join(dir, "bin", "run"))
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// 3 of 3 files succeeded (100.0 %), 0 failed (0.0 %): 3 durable; 18 bytes, 3 attempts <nil>
	// #!/bin/sh
	// <nil>
}
