package lumberjack_test

import (
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
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

// A server with pluggable outputs, such as Caddy, asks each for an io.WriteCloser. Its configuration has the fields.
func Example_writeCloser() {
	type output interface {
		OpenWriter() (io.WriteCloser, error)
	}
	var _ output = fileOutput{}
	// Output:
}

type fileOutput struct {
	Path       string `json:"filename"`
	RollSizeMB int    `json:"roll_size_mb"`
	RollKeep   int    `json:"roll_keep"`
	RollLocal  bool   `json:"roll_local_time"`
}

func (f fileOutput) OpenWriter() (io.WriteCloser, error) {
	return &lumberjack.Logger{Filename: f.Path, MaxSize: f.RollSizeMB, MaxBackups: f.RollKeep, LocalTime: f.RollLocal, Compress: true}, nil
}

// A proxy such as Traefik writes its access log there, rotates it on a signal, and closes it at the end.
func Example_signal() {
	access := &lumberjack.Logger{Filename: filepath.Join(os.TempDir(), "access.log"), MaxBackups: 3}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for range signals {
			if err := access.Rotate(); err != nil {
				log.Print(err)
			}
		}
	}()
	signal.Stop(signals)
	close(signals)
	if err := access.Close(); err != nil {
		log.Print(err)
	}
	// Output:
}

// An exporter such as the OpenTelemetry Collector's writes a record and its line feed by two Writes, under its own lock. No
// rotation comes between them, and with a buffer no flush. Its own flush each second is replaced by Policy.
func Example_twoWrites() {
	dir, err := os.MkdirTemp("", "lumberjack")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := &lumberjack.Logger{Filename: filepath.Join(dir, "traces.json"), MaxSize: 100, MaxAge: 7, Policy: holdfast.Periodic(time.Second)}
	for _, part := range []string{`{"resourceSpans":[]}`, "\n"} {
		if _, err := file.Write([]byte(part)); err != nil {
			log.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(file.Filename)
	fmt.Printf("%s %v\n", text, err)
	// Output:
	// {"resourceSpans":[]}
	//  <nil>
}
