package logrus_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/logrus"
	"github.com/holdfast-go/holdfast/rotate"
	sirupsen "github.com/sirupsen/logrus"
)

func Example() {
	dir, err := os.MkdirTemp("", "logrus")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	out, err := rotate.Open(filepath.Join(dir, "app.log"), rotate.Options{
		Policy:  holdfast.Periodic(time.Second),
		MaxSize: 100 * holdfast.MiB, MaxBackups: 7, Compress: true,
		OnError: func(err *rotate.Error) { fmt.Fprintln(os.Stderr, err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	logger := sirupsen.New()
	logger.SetFormatter(&sirupsen.JSONFormatter{DisableTimestamp: true})
	logrus.Use(logger, out)
	logger.WithField("pid", 1).Info("started")
	if err := out.Close(); err != nil { // else the last second is lost
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "app.log"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// {"level":"info","msg":"started","pid":1}
}

func TestFatalLosesNoRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	out, err := rotate.Open(path, rotate.Options{Policy: holdfast.Buffered(64 * holdfast.KiB)})
	if err != nil {
		t.Fatal(err)
	}
	code := -1
	logger := sirupsen.New()
	logger.ExitFunc = func(n int) {
		code = n
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "the end") {
			t.Errorf("at the exit the log holds %q, %v", text, err)
		}
		if _, err := out.Write([]byte("late\n")); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("at the exit the log is open: %v", err)
		}
	}
	logrus.Use(logger, out)
	logger.Fatal("the end")
	if code != 1 {
		t.Errorf("the exit code is %d", code)
	}
}

// TestFatalEndsAProcessWhoseLoggerHasNoExitFunc, after the log is closed.
func TestFatalEndsAProcessWhoseLoggerHasNoExitFunc(t *testing.T) {
	const name = "HOLDFAST_TEST_LOG"
	if path := os.Getenv(name); path != "" {
		out, err := rotate.Open(path, rotate.Options{Policy: holdfast.Buffered(64 * holdfast.KiB)})
		if err != nil {
			t.Fatal(err)
		}
		logger := &sirupsen.Logger{Formatter: new(sirupsen.TextFormatter), Level: sirupsen.InfoLevel}
		logrus.Use(logger, out)
		logger.Fatal("the end")
	}
	path := filepath.Join(t.TempDir(), "app.log")
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), name+"="+path)
	text, err := child.CombinedOutput()
	if child.ProcessState.ExitCode() != 1 || len(text) > 0 {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "the end") {
		t.Errorf("the log holds %q, %v", text, err)
	}
}
