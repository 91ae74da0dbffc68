package wal_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/wal"
)

func Example() {
	dir, err := os.MkdirTemp("", "wal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, found, err := wal.Open(filepath.Join(dir, "log"), wal.Options{Policy: holdfast.Durable()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Records, "records were there,", found.Torn, "bytes of a torn end were cut")

	// On nil both are on stable storage, or after a crash neither is there.
	last, err := l.Append([]byte("debit alice 5"), []byte("credit bob 5"))
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range l.Records(1) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s\n", r.Index, r.Data)
	}
	if err := l.TruncateBefore(last); err != nil { // a snapshot has the rest
		log.Fatal(err)
	}
	fmt.Println("from", l.First(), "to", l.Last())
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 records were there, 0 bytes of a torn end were cut
	// 1: debit alice 5
	// 2: credit bob 5
	// from 2 to 2
}

// A log that keeps at most 1 GiB and the records of a week, but all that a reader still needs.
func ExampleLog_FirstWithin() {
	dir, err := os.MkdirTemp("", "wal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, _, err := wal.Open(dir, wal.Options{Policy: holdfast.Durable()})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	needed, err := l.Append([]byte("one"), []byte("two"))
	if err != nil {
		log.Fatal(err)
	}
	if err := l.TruncateBefore(min(needed, l.FirstWithin(holdfast.GiB, 7*24*time.Hour))); err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.First(), l.Last())
	// Output: 1 2
}

// A reader follows the log while others append to it. It ends when ctx does: that is no failure.
func ExampleLog_Follow() {
	dir, err := os.MkdirTemp("", "wal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, _, err := wal.Open(dir, wal.Options{Policy: holdfast.Durable()})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		for n := range 3 {
			if _, err := l.Append(fmt.Appendf(nil, "order %d", n)); err != nil {
				log.Fatal(err)
			}
		}
	}()
	for r, err := range l.Follow(ctx, 1) {
		if errors.Is(err, context.Canceled) {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d: %s\n", r.Index, r.Data)
		if r.Index == 3 {
			stop()
		}
	}
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1: order 0
	// 2: order 1
	// 3: order 2
}
