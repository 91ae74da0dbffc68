//go:build go1.25

package zap_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/adapters/zap"
	"github.com/holdfast-go/holdfast/rotate"
	uber "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// register is called once: zap refuses a second.
var register = sync.OnceValue(func() error {
	return zap.Register(func(err *rotate.Error) {
		if heard != nil {
			heard(err)
		}
	})
})

// heard is called with each failure.
var heard func(*rotate.Error)

func Example() {
	dir, err := os.MkdirTemp("", "zap")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.ToSlash(filepath.Join(dir, "app.log"))

	if err := register(); err != nil { // zap.Register(onError)
		log.Fatal(err)
	}
	config := uber.NewProductionConfig()
	config.EncoderConfig.TimeKey = ""
	config.DisableCaller = true
	config.OutputPaths = []string{"holdfast://" + path + "?policy=periodic=1s&size=100MiB&backups=7&compress=true"}
	logger, err := config.Build()
	if err != nil {
		log.Fatal(err)
	}
	logger.Info("started", uber.Int("pid", 1))
	if err := logger.Sync(); err != nil { // else the last second is lost
		log.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// {"level":"info","msg":"started","pid":1}
}

func TestPanicLosesNoRecord(t *testing.T) {
	out, err := rotate.Open(filepath.Join(t.TempDir(), "app.log"), rotate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	logger := uber.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}), out, uber.InfoLevel))
	func() {
		defer func() { _ = recover() }()
		logger.Panic("the end")
	}()
	if s := out.Stats(); s.Syncs != 1 || s.NotDurable != 0 {
		t.Errorf("after Panic: %+v", s)
	}
}

func TestWhatCantBeKeptIsRefused(t *testing.T) {
	if err := register(); err != nil {
		t.Fatal(err)
	}
	dir := "holdfast://" + filepath.ToSlash(t.TempDir())
	for url, want := range map[string]string{
		dir + "/a.log?policy=sometimes":  `policy="sometimes": policy "sometimes": `,
		dir + "/a.log?size=big":          `size="big": size "big" does not start`,
		dir + "/a.log?sise=1MiB":         `sise="1MiB": it is no key; use policy, size, `,
		dir + "/a.log?perm=999":          `perm="999": `,
		dir + "/no/a.log":                "no such file or directory",
		dir + "/a.log?age=1":             `age="1": `,
		dir + "/a.log?backups=-1":        "MaxBackups -1 is negative",
		dir + "/a.log?size=1MiB%":        `invalid URL escape "%"`,
		dir + "/a.log?age=1h;backups=3":  "invalid semicolon",
		dir + "/a.log?at=00:00&at=25:00": `"25:00"`,
		dir + "/a.log?age=1h&age=2h":     "age is given 2 times; give it once",
	} {
		_, closeAll, err := uber.Open(url)
		if err == nil {
			closeAll()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	_, closeAll, err := uber.Open(dir + "/a.log?perm=640&at=00:00&at=12:00&interval=1h&total=1GiB&compress=true")
	if err != nil {
		t.Fatal(err)
	}
	closeAll()
}

func TestFailuresGoToOnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove a directory that holds an open file")
	}
	if err := register(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var all []*rotate.Error
		heard = func(err *rotate.Error) { all = append(all, err) }
		defer func() { heard = nil }()
		out, closeAll, err := uber.Open("holdfast://" + filepath.ToSlash(dir) + "/a.log?policy=durable")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		_, failed := out.Write([]byte("record\n"))
		synctest.Wait()
		closeAll()
		synctest.Wait()
		if failed == nil || len(all) == 0 {
			t.Errorf("Write = %v, and %d failures were heard", failed, len(all))
		}
	})
}
