package rotate_test

import (
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rotate"
)

func Example() {
	dir, err := os.MkdirTemp("", "rotate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	out, err := rotate.Open(filepath.Join(dir, "app.log"), rotate.Options{
		Policy:  holdfast.Periodic(time.Second), // a power cut takes the last second and the sync in flight
		MaxSize: 100 * holdfast.MiB, MaxBackups: 7, Compress: true,
		OnError: func(err *rotate.Error) { fmt.Fprintln(os.Stderr, err) }, // slog drops it
	})
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close() // else the last records are lost
	slog.New(slog.NewJSONHandler(out, nil)).Info("started", "pid", 1)
	// Output:
}

// A program that logrotate sends a SIGHUP to, after it has moved the file.
func ExampleFile_Reopen() {
	dir, err := os.MkdirTemp("", "rotate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "app.log")
	out, err := rotate.Open(path, rotate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()

	fmt.Fprintln(out, "before")
	if err := os.Rename(path, path+".1"); err != nil { // as logrotate does
		log.Fatal(err)
	}
	if err := out.Reopen(); err != nil { // in a goroutine, for each signal of signal.Notify
		log.Fatal(err)
	}
	fmt.Fprintln(out, "after")

	for _, name := range []string{path + ".1", path} {
		text, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(string(text))
	}
	// Output:
	// before
	// after
}
