package recipes

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	hashicorp "github.com/hashicorp/raft"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/internal/crash/syscallfault"
	"github.com/holdfast-go/holdfast/internal/isolate"
	"github.com/holdfast-go/holdfast/wal"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"gopkg.in/yaml.v3"
)

func TestMain(m *testing.M) {
	syscallfault.Launch()
	os.Exit(isolate.Tests{M: m}.Run())
}

func TestUnknownCommandIsRefused(t *testing.T) { isolate.RefusesUnknownCommand(t) }

var update = flag.Bool("update", false, "write docs/recipes.md")

// recipes are the files of the page, with their titles.
var recipes = []struct{ title, file, language string }{
	{"JSON access logs, as Caddy has them", "accesslog.go", "go"},
	{"log/slog in a service: SIGTERM and SIGHUP", "service.go", "go"},
	{"zap with a log that rotates", "zap.go", "go"},
	{"An exporter of 2,000 files", "export.go", "go"},
	{"A store for raft", "raft.go", "go"},
	{"A journal of events, with followers", "journal.go", "go"},
	{"The state of a daemon", "state.go", "go"},
	{"Metrics for Prometheus' textfile collector", "textfile.go", "go"},
	{"Crash tests for your own store", "store_test.go", "go"},
	{"Crash tests and speed in GitHub Actions", "testdata/crash.yml", "yaml"},
}

const head = `# Recipes: whole functions to copy

Each recipe is a whole function to copy, and runs in a test: [` + "`dev/programs/recipes`" + `](../dev/programs/recipes) has them with their imports.
What they cost and what a crash takes is in [programs.md](programs.md), why in [policies.md](policies.md).
`

// TestPageShowsTheRecipes: docs/recipes.md has the files from behind their imports on; -update writes it.
func TestPageShowsTheRecipes(t *testing.T) {
	page := head
	for _, r := range recipes {
		text, err := os.ReadFile(r.file)
		if err != nil {
			t.Fatal(err)
		}
		shown := string(text)
		if r.language == "go" {
			_, shown, _ = strings.Cut(shown, "\n)\n\n")
		}
		most := 40
		if r.language == "yaml" {
			most = 25
		}
		if n := strings.Count(shown, "\n"); n > most || n < 10 {
			t.Errorf("%s has %d lines, want 10 to %d", r.file, n, most)
		}
		page += fmt.Sprintf("\n## %s\n\n```%s\n%s```\n", r.title, r.language, shown)
	}
	const path = "../../../docs/recipes.md"
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(path); err != nil || string(is) != page {
		t.Errorf("docs/recipes.md does not show the recipes (%v); go test -C dev/programs ./recipes -run Page -update writes it", err)
	}
	shown, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range shown {
		if file != "doc.go" && file != "recipes_test.go" && !strings.Contains(fmt.Sprint(recipes), file) {
			t.Errorf("%s is on no page", file)
		}
	}
}

func TestAccessLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	handler, log, err := AccessLog(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}))
	if err != nil {
		t.Fatal(err)
	}
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/pot?x=1", nil))
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, path, `"method":"GET","host":"example.com","uri":"/pot?x=1","status":418,"size":15,"duration":`)
}

func TestServe(t *testing.T) {
	isolate.Once(t)
	path := filepath.Join(t.TempDir(), "app.log")
	exists := func(path string) bool { info, err := os.Stat(path); return err == nil && info.Size() > 0 }
	err := Serve(path, func(ctx context.Context, log *slog.Logger) error {
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		await := func(what func() bool) {
			for tick := time.Tick(5 * time.Millisecond); ctx.Err() == nil && !what(); <-tick {
			}
		}
		log.Info("before the rotation")
		await(func() bool { return exists(path) }) // nothing is left to be written, so that the log looks at its name only when it is told to
		if err := errors.Join(os.Rename(path, path+".1"), syscall.Kill(os.Getpid(), syscall.SIGHUP)); err != nil {
			return err
		}
		await(func() bool { _, err := os.Stat(path); return err == nil })
		log.Info("behind the rotation")
		err := syscall.Kill(os.Getpid(), syscall.SIGTERM)
		<-ctx.Done()
		return errors.Join(err, ignoreCanceled(context.Cause(ctx)))
	})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, path+".1", "before the rotation")
	holds(t, path, "behind the rotation")
}

// ignoreCanceled is an error, or nil if a signal caused it.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func TestNewLogger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	logger, err := NewLogger(path)
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("started", zap.Int("pid", 1))
	if err := logger.Sync(); err != nil {
		t.Fatal(err)
	}
	holds(t, path, `"msg":"started","pid":1}`)
}

func TestExport(t *testing.T) {
	dir := isolate.DirInMemory(t)
	err := Export(t.Context(), dir, func(yield func(string, []byte) bool) {
		for n := range 2000 {
			if !yield(fmt.Sprintf("d%d/report%d", n%10, n), []byte("text")) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "complete"))
	if n := bytes.Count(text, []byte("\n")); err != nil || n != 2000 {
		t.Errorf("the list has %d names, %v", n, err)
	}
	holds(t, filepath.Join(dir, "d9", "report1999"), "text")
}

type machine struct{ applied []string }

func (m *machine) Apply(e *hashicorp.Log) any {
	m.applied = append(m.applied, string(e.Data))
	return nil
}
func (*machine) Snapshot() (hashicorp.FSMSnapshot, error)   { return nil, errors.ErrUnsupported }
func (*machine) Restore(snapshot io.ReadCloser) (err error) { return snapshot.Close() }

func TestOpenNode(t *testing.T) {
	dir := t.TempDir()
	for life := range 2 {
		config, m := hashicorp.DefaultConfig(), &machine{}
		config.LocalID, config.LogOutput = "one", io.Discard
		config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
		address, transport := hashicorp.NewInmemTransport("one")
		node, store, err := OpenNode(dir, config, m, transport)
		if err != nil {
			t.Fatal(err)
		}
		if life == 0 {
			if err := node.BootstrapCluster(hashicorp.Configuration{Servers: []hashicorp.Server{{ID: "one", Address: address}}}).Error(); err != nil {
				t.Fatal(err)
			}
		}
		<-node.LeaderCh()
		err = node.Apply(fmt.Append(nil, "command ", life), 0).Error()
		if err = errors.Join(err, node.Shutdown().Error(), store.Close()); err != nil {
			t.Fatal(err)
		}
		if life == 1 && strings.Join(m.applied, ", ") != "command 0, command 1" {
			t.Errorf("applied %q", m.applied)
		}
	}
}

func TestConsume(t *testing.T) {
	dir := t.TempDir()
	journal, _, err := wal.Open(filepath.Join(dir, "journal"), wal.Options{Policy: holdfast.Durable()})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	if _, err := journal.Append([]byte("one"), []byte("two"), []byte("three")); err != nil {
		t.Fatal(err)
	}
	var got []string
	ended := errors.New("the consumer ends")
	for _, until := range []string{"two", "three"} { // the first is ended while it handles two: it comes again
		err := Consume(t.Context(), journal, filepath.Join(dir, "position"), func(event []byte) error {
			if got = append(got, string(event)); string(event) == until {
				return ended
			}
			return nil
		})
		if !errors.Is(err, ended) {
			t.Fatal(err)
		}
	}
	if text := strings.Join(got, ", "); text != "one, two, two, three" {
		t.Error(text)
	}
	ctx, stop := context.WithCancel(t.Context())
	err = Consume(ctx, journal, filepath.Join(dir, "position"), func([]byte) error { stop(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	state := map[string]int{"default": 7}
	if err := LoadState(path, &state); err != nil || state["default"] != 7 {
		t.Errorf("%v, %v", state, err)
	}
	for n := range 2 {
		if err := SaveState(path, map[string]int{"position": n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := LoadState(path, &state); err != nil || state["position"] != 1 {
		t.Errorf("%v, %v", state, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := LoadState(path, &state); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half of a state: %v", err)
	}
}

func TestTextfile(t *testing.T) {
	dir := t.TempDir()
	set, err := files.New(files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	registry := prometheus.NewRegistry()
	backups := prometheus.NewGauge(prometheus.GaugeOpts{Name: "backup_size_bytes", Help: "Bytes of the last backup."})
	registry.MustRegister(backups)
	backups.Set(4096)
	if err := WriteTextfile(t.Context(), set, dir, "backup", registry); err != nil {
		t.Fatal(err)
	}
	holds(t, filepath.Join(dir, "backup.prom"), "# TYPE backup_size_bytes gauge\nbackup_size_bytes 4096\n")
}

// TestWorkflowUsesTheAction: what the workflow gives to the action, the action takes.
func TestWorkflowUsesTheAction(t *testing.T) {
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	var action struct{ Inputs map[string]any }
	for path, to := range map[string]any{"testdata/crash.yml": &workflow, "../../../action.yml": &action} {
		text, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ours := 0
	for _, step := range workflow.Jobs["crash"].Steps {
		if !strings.HasPrefix(step.Uses, "holdfast-go/holdfast@") {
			continue
		}
		ours++
		for name := range step.With {
			if _, ok := action.Inputs[name]; !ok {
				t.Errorf("action.yml has no input %q", name)
			}
		}
	}
	if ours != 1 {
		t.Errorf("%d steps use the action", ours)
	}
}

// TestActionComparesTwoBuilds runs the action's comparison with commands that only say how they are called.
func TestActionComparesTwoBuilds(t *testing.T) {
	var action struct {
		Runs struct{ Steps []struct{ If, Run string } }
	}
	text, err := os.ReadFile("../../../action.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &action)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fake := func(name, script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	fake("holdfast", `echo "$0 $*"; exit 1`) // the new build is slower
	fake("go", `case $1 in
install) to=$GOBIN;;
*) to=$5;;
esac
mkdir -p "$to" && cp "$(dirname "$0")/holdfast" "$to/" && echo "go $*"`)
	ran := 0
	for _, step := range action.Runs.Steps {
		if !strings.Contains(step.If, "against") {
			continue
		}
		ran++
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", step.Run)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "RUNNER_TEMP="+dir, "GITHUB_ACTION_PATH=/action", "AGAINST=v0.1.0")
		said, err := cmd.CombinedOutput()
		want := fmt.Sprintf("go install github.com/holdfast-go/holdfast/cmd/holdfast@v0.1.0\ngo -C /action build -o %[1]s/new/ ./cmd/holdfast\n"+
			"%[1]s/new/holdfast bench --against %[1]s/old/holdfast --dir %[1]s\n", dir)
		if failed := (*exec.ExitError)(nil); string(said) != want || !errors.As(err, &failed) || failed.ExitCode() != 1 {
			t.Errorf("%v, want exit code 1; it said\n%s\nwant\n%s", err, said, want)
		}
	}
	if ran != 1 {
		t.Errorf("%d steps of the action compare", ran)
	}
}

// holds checks that a file has a text.
func holds(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%s: %v\n%s\nit lacks %s", path, err, text, want)
	}
}
