package zerolog_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/zerolog"
	"github.com/holdfast-go/holdfast/rotate"
	rs "github.com/rs/zerolog"
)

func Example() {
	dir, err := os.MkdirTemp("", "zerolog")
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
	logger := rs.New(zerolog.Writer{File: out})
	logger.Info().Int("pid", 1).Msg("started")
	if err := out.Close(); err != nil { // else the last second is lost
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "app.log"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// {"level":"info","pid":1,"message":"started"}
}

func TestPanicIsDurableAndInfoNot(t *testing.T) {
	out, err := rotate.Open(filepath.Join(t.TempDir(), "app.log"), rotate.Options{Policy: holdfast.Buffered(64 * holdfast.KiB)})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	logger := rs.New(zerolog.Writer{File: out})
	logger.Info().Msg("before")
	if s := out.Stats(); s.Syncs != 0 || s.NotFlushed == 0 {
		t.Errorf("after Info: %+v", s)
	}
	func() {
		defer func() { _ = recover() }()
		logger.Panic().Msg("the end")
	}()
	if s := out.Stats(); s.Syncs != 1 || s.NotDurable != 0 {
		t.Errorf("after Panic: %+v", s)
	}
}

// TestARecordThatIsNotDurableIsAnError of the level Fatal: the log was removed.
func TestARecordThatIsNotDurableIsAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove an open file")
	}
	path := filepath.Join(t.TempDir(), "app.log")
	out, err := rotate.Open(path, rotate.Options{Policy: holdfast.Buffered(64 * holdfast.KiB)})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if n, err := (zerolog.Writer{File: out}).WriteLevel(rs.FatalLevel, []byte("the end\n")); n != 8 || !errors.Is(err, holdfast.ErrUnlinked) {
		t.Errorf("WriteLevel = %d, %v", n, err)
	}
}
