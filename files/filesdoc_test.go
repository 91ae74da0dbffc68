//go:build go1.25

package files_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/files"
)

// The code of docs/files.md, compiled and run.

// export writes a file for each report. The error joins the errors of all files that failed.
func export(ctx context.Context, dir string, reports map[string][]byte) (files.Totals, error) {
	set, err := files.New(files.Options{Policy: holdfast.Durable(), MkdirAll: true})
	if err != nil {
		return files.Totals{}, err
	}
	defer set.Close() // nothing was appended, so it has no failure to report

	results, err := set.WriteAll(ctx, func(yield func(files.Write) bool) {
		for name, data := range reports {
			if !yield(files.Write{Path: filepath.Join(dir, name), Data: data, Mode: files.Replace}) {
				return
			}
		}
	})
	return results.Totals(), err
}

// announce appends one message to every path. The results have each path, also paths that the end of ctx left out.
func announce(ctx context.Context, set *files.Set, paths []string, message string) string {
	results, err := set.WriteEach(ctx, paths, []byte(message), files.Append)
	if err != nil {
		return results.String() // the rates, and the first failures
	}
	return results.Totals().String() // 3 of 3 files succeeded (100.0 %), 0 failed (0.0 %): 3 durable; 18 bytes, 3 attempts
}

// save keeps what r gives at path: all of it, or the old file.
func save(ctx context.Context, set *files.Set, path string, r io.Reader) error {
	p, err := set.Pending(path)
	if err != nil {
		return err
	}
	defer p.Discard()
	if _, err := io.Copy(p, r); err != nil {
		return err
	}
	return p.Commit(ctx)
}

func TestTheStreamedFileOfTheDocs(t *testing.T) {
	set, err := files.New(files.Options{Policy: holdfast.Durable()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	path := filepath.Join(t.TempDir(), "file")
	if err := save(context.Background(), set, path, strings.NewReader("all of it")); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("torn")
	if err := save(context.Background(), set, path, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(failed))); !errors.Is(err, failed) {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "all of it" {
		t.Errorf("%q", got)
	}
}

// publishAfter makes objects durable, and then the reference to them.
func publishAfter(ctx context.Context, set *files.Set, objects map[string][]byte, ref string, id []byte) error {
	b := set.Begin()
	defer b.Discard()
	for path, data := range objects {
		if err := b.Write(path, data); err != nil {
			return err
		}
	}
	if _, err := b.Commit(ctx); err != nil {
		return err
	}
	_, err := set.WriteFile(ctx, ref, id, files.Replace)
	return err
}

func TestThePublicationOfTheDocs(t *testing.T) {
	set, err := files.New(files.Options{Policy: holdfast.Durable()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	dir := t.TempDir()
	ref := filepath.Join(dir, "ref")
	objects := map[string][]byte{filepath.Join(dir, "one"): []byte("1"), filepath.Join(dir, "none", "two"): []byte("2")}
	if err := publishAfter(context.Background(), set, objects, ref, []byte("id")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	onlyFiles(t, dir)
	delete(objects, filepath.Join(dir, "none", "two"))
	if err := publishAfter(context.Background(), set, objects, ref, []byte("id")); err != nil {
		t.Error(err)
	}
	onlyFiles(t, dir, "one", "ref")
}

// whatToDo classifies the error of a Write without a look at its text.
func whatToDo(err error) string {
	var failed *files.Error
	switch {
	case err == nil:
		return "go on"
	case errors.Is(err, context.Canceled):
		return "stop"
	case errors.Is(err, fs.ErrExist):
		return "take another name"
	case errors.Is(err, files.ErrTemporary):
		return "come back later"
	case errors.As(err, &failed) && failed.Outcome == holdfast.OutcomeUncertain:
		return "write it again, to another file"
	default:
		return "report it"
	}
}

// logFailures logs each file that could not be written, and the totals.
func logFailures(log *slog.Logger, results *files.Results) {
	for _, r := range results.All() {
		if r.Err != nil {
			log.Error("file", "path", r.Path, "outcome", r.Outcome, "bytes", r.Bytes, "attempts", r.Attempts, "error", r.Err)
		}
	}
	t := results.Totals()
	log.Info("files", "given", t.Files, "durable", t.Durable, "written", t.Written, "failed", t.Failed, "bytes", t.Bytes)
}

// rotate puts the log at path aside.
func rotate(ctx context.Context, set *files.Set, path string) error {
	if err := os.Rename(path, path+".1"); err != nil {
		return err
	}
	return set.Release(ctx, path)
}

// A tenantLog is the writer of one tenant's log.
type tenantLog struct {
	set  *files.Set
	path string
}

func (l tenantLog) Write(p []byte) (int, error) {
	if err := l.set.Append(context.Background(), l.path, p); err != nil {
		var failed *files.Error
		if errors.As(err, &failed) {
			return int(failed.Offset), err
		}
		return 0, err
	}
	return len(p), nil
}

// newTenantLog returns a logger for a tenant. Any number of them share one Set.
func newTenantLog(set *files.Set, tenant string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(tenantLog{set, filepath.Join("logs", tenant+".log")}, nil))
}

// publish shows the counters among the program's variables.
func publish(name string, set *files.Set) {
	expvar.Publish(name, expvar.Func(func() any { return set.Stats() }))
}

// filesDoc returns the blocks of a language in docs/files.md.
func filesDoc(t *testing.T, language string) (blocks []string) {
	t.Helper()
	doc, err := os.ReadFile("../docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(doc), "\r\n", "\n")
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```\n").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, found[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("docs/files.md shows no %s", language)
	}
	return blocks
}

func TestFilesDocShowsWhatIsCompiled(t *testing.T) {
	code, err := os.ReadFile("filesdoc_test.go")
	if err != nil {
		t.Fatal(err)
	}
	compiled := strings.ReplaceAll(string(code), "\r\n", "\n")
	for _, block := range filesDoc(t, "go") {
		if !strings.Contains(compiled, block) {
			t.Errorf("docs/files.md shows what filesdoc_test.go does not have:\n%s", block)
		}
	}
}

// shownOptions are the options in docs/files.md, as JSON and as YAML.
var shownOptions = files.Options{
	Policy:  holdfast.Policy{Buffer: 64 * holdfast.KiB, FlushEvery: 100 * time.Millisecond, Sync: holdfast.SyncEvery(time.Second)},
	Workers: 4, Handles: 256, Memory: 64 * holdfast.MiB, MkdirAll: true, Perm: 0o640, Lines: true, Batch: 1000, Effort: holdfast.Best,
	Retry: files.Retry{Attempts: 6, Base: 50 * time.Millisecond, Cap: 2 * time.Second},
}

func TestFilesDocShowsOptionsThatAreRead(t *testing.T) {
	var fromJSON, fromYAML files.Options
	if err := json.Unmarshal([]byte(filesDoc(t, "json")[0]), &fromJSON); err != nil || fromJSON != shownOptions {
		t.Errorf("JSON: %+v, %v", fromJSON, err)
	}
	err := fromYAML.UnmarshalYAML(func(to any) error {
		text, err := json.Marshal(plainYAML(filesDoc(t, "yaml")[0]))
		if err != nil {
			return err
		}
		return json.Unmarshal(text, to) // JSON has the same names
	})
	if err != nil || fromYAML != shownOptions {
		t.Errorf("YAML: %+v, %v", fromYAML, err)
	}
}

// plainYAML reads keys with plain or quoted values, and one map in the map: as much
// of YAML as the document has.
func plainYAML(text string) map[string]any {
	top := map[string]any{}
	values := top
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			values = top
		}
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		var scalar any
		switch {
		case value == "":
			values = map[string]any{}
			top[key] = values
		case json.Unmarshal([]byte(value), &scalar) == nil: // numbers, true, "quoted"
			values[key] = scalar
		default:
			values[key] = value
		}
	}
	return top
}

func TestShownExportReplacesFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for _, text := range []string{"one", "two"} {
		totals, err := export(t.Context(), dir, map[string][]byte{"a": []byte(text), "b": []byte(text)})
		totals.NoJournal = 0 // depends on the file system
		if want := (files.Totals{Files: 2, Durable: 2, Bytes: 6, Attempts: 2}); err != nil || totals != want {
			t.Errorf("%+v, %v; want %+v", totals, err, want)
		}
		for _, name := range []string{"a", "b"} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
				t.Errorf("%s holds %q, %v", name, got, err)
			}
		}
	}
}

func TestShownClassificationSeparatesErrors(t *testing.T) {
	set, err := files.New(files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	check := func(err error, want string) {
		t.Helper()
		if got := whatToDo(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	path := filepath.Join(t.TempDir(), "a")
	_, err = set.WriteFile(t.Context(), path, nil, files.Create)
	check(err, "go on")
	_, err = set.WriteFile(t.Context(), path, nil, files.Create)
	check(err, "take another name")
	_, err = set.WriteFile(t.Context(), filepath.Join(path, "below"), nil, files.Create)
	check(err, "report it")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = set.WriteFile(ended, path, nil, files.Append)
	check(err, "stop")
	check(&files.Error{Op: "write", Err: syscall.ENOSPC}, "come back later")
	check(&files.Error{Op: "sync", Outcome: holdfast.OutcomeUncertain, Err: syscall.EIO}, "write it again, to another file")
}

func TestShownLogReportsWhatFailed(t *testing.T) {
	set, err := files.New(files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	dir := t.TempDir()
	results, err := set.WriteAll(t.Context(), func(yield func(files.Write) bool) {
		_ = yield(files.Write{Path: filepath.Join(dir, "a"), Data: []byte("x")}) &&
			yield(files.Write{Path: filepath.Join(dir, "no", "b"), Data: []byte("x")})
	})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a missing directory: %v", err)
	}
	var out bytes.Buffer
	logFailures(slog.New(slog.NewTextHandler(&out, nil)), results)
	for _, want := range []string{"level=ERROR msg=file path=", "outcome=untouched", "msg=files given=2 durable=0 written=1 failed=1 bytes=1\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &out)
		}
	}
}

func TestShownTenantLogsAreRotated(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows renames no file that is open")
	}
	t.Chdir(t.TempDir())
	set, err := files.New(files.Options{Policy: holdfast.Buffered(holdfast.KiB), MkdirAll: true})
	if err != nil {
		t.Fatal(err)
	}
	log := newTenantLog(set, "blue")
	log.Info("before")
	if err := set.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.Info("between")
	path := filepath.Join("logs", "blue.log")
	if err := rotate(t.Context(), set, path); err != nil {
		t.Fatal(err)
	}
	log.Info("after")
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := (tenantLog{set, path}).Write([]byte("late")); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %d, %v", n, err)
	}
	check := func(path string, messages ...string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil || bytes.Count(text, []byte("\n")) != len(messages) {
			t.Errorf("%s, %v; want the messages %v", text, err, messages)
		}
		for _, message := range messages {
			if !strings.Contains(string(text), `"msg":"`+message+`"`) {
				t.Errorf("%s lacks %s:\n%s", path, message, text)
			}
		}
	}
	check(path+".1", "before", "between")
	check(path, "after")
}

func TestShownMessageGoesToAllFiles(t *testing.T) {
	dir := t.TempDir()
	set, err := files.New(files.Options{Policy: holdfast.Durable()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	paths := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")}
	const want = "3 of 3 files succeeded (100.0 %), 0 failed (0.0 %): 3 durable; 18 bytes, 3 attempts"
	if got := announce(t.Context(), set, paths, "hello\n"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := announce(t.Context(), set, append(paths, dir), "hello\n"); !strings.HasPrefix(got, "3 of 4 files succeeded (75.0 %)") || !strings.Contains(got, "\nholdfast: open "+dir) {
		t.Error(got)
	}
}

func TestShownVariableIsJSON(t *testing.T) {
	set, err := files.New(files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	name := fmt.Sprintf("files-%d", rand.Uint64()) // variables stay until the process ends
	publish(name, set)
	var stats files.Stats
	if err := json.Unmarshal([]byte(expvar.Get(name).String()), &stats); err != nil || stats != set.Stats() {
		t.Errorf("%s, %v", expvar.Get(name), err)
	}
}
