package lumberjack_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/lumberjack"
	"github.com/holdfast-go/holdfast/rotate"
)

// The fields are lumberjack's, so a program changes one import. Policy and OnError are new.
func Example() {
	dir, err := os.MkdirTemp("", "lumberjack")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	out := &lumberjack.Logger{
		Filename: filepath.Join(dir, "app.log"), MaxSize: 100, MaxBackups: 7, Compress: true,
		Policy:  holdfast.Periodic(time.Second), // a power cut takes the last second and the sync in flight
		OnError: func(err *rotate.Error) { fmt.Fprintln(os.Stderr, err) },
	}
	logger := log.New(out, "", 0)
	logger.Print("started")
	if err := out.Close(); err != nil { // else the last second is lost
		log.Fatal(err)
	}
	text, err := os.ReadFile(out.Filename)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// started
}
