package tree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	modversion "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// published is the version under which the modules require each other.
const published = "v0.1.0"

// unreachable is go's message where no proxy answers.
var unreachable = regexp.MustCompile(`dial tcp|no such host|connection refused|proxyconnect|i/o timeout|TLS handshake|module lookup disabled|5\d\d (Bad|Service|Gateway)`)

// A proxy is a directory in the layout of GOPROXY with every module that somebody may fetch, and the
// environment in which go takes them from there, with no workspace.
type proxy struct {
	env []string
	bin string // GOBIN
}

// theProxy serves all tests: modules of others are fetched and unpacked once.
var theProxy struct {
	once sync.Once
	proxy
}

func newProxy(t *testing.T) proxy {
	t.Helper()
	theProxy.once.Do(func() { theProxy.proxy = makeProxy(t) })
	if theProxy.env == nil {
		t.Fatal("there is no proxy, as another test says")
	}
	return theProxy.proxy
}

func makeProxy(t *testing.T) proxy {
	t.Helper()
	dir := filepath.Join(made, "proxy")
	for _, of := range fetched(t) {
		version := modversion.Version{Path: goMod(t, of).Module.Path, Version: published}
		to := filepath.Join(dir, filepath.FromSlash(version.Path), "@v")
		mod, err := os.ReadFile(filepath.Join(of, "go.mod"))
		if err == nil {
			err = os.MkdirAll(to, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"list":              published + "\n",
			published + ".info": `{"Version":"` + published + `","Time":"2026-01-01T00:00:00Z"}`,
			published + ".mod":  string(mod),
		} {
			if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		file, err := os.Create(filepath.Join(to, published+".zip"))
		if err == nil {
			err = errors.Join(zip.CreateFromDir(file, version, of), file.Close())
		}
		if err != nil {
			t.Fatalf("%s can't be published: %v", version.Path, err)
		}
	}
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, others, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	// The modules of others come from the cache where it has them. Ours must not get into it.
	bin, ours, kept := filepath.Join(made, "bin"), fileURL(dir), fileURL(filepath.Join(cache, "cache", "download"))
	return proxy{bin: bin, env: append(os.Environ(), "GOWORK=off", "GOSUMDB=off", "GOMODCACHE="+filepath.Join(made, "modules"), "GOFLAGS=-mod=mod -modcacherw -trimpath -ldflags=-w",
		"CGO_ENABLED=0", "GOBIN="+bin, "GOPROXY="+strings.Join([]string{ours, kept, others}, ","))}
}

func fileURL(dir string) string {
	return "file://" + strings.TrimSuffix("/"+strings.TrimPrefix(filepath.ToSlash(dir), "/"), "/")
}

// run runs a command of go in a directory, and skips the test where no proxy answers.
func (p proxy) run(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, p.env
	out, err := cmd.CombinedOutput()
	if err != nil && unreachable.Match(out) {
		t.Skipf("a module of others can't be fetched: go %s: %s", strings.Join(args, " "), out)
	}
	return string(out), err
}

func (p proxy) must(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := p.run(t, dir, args...); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// A library is the one that an adapter serves. A program that takes the adapter takes its requirements too: raft
// 1.8.0 brings a go-metrics with which no program with serf can be built. So the adapter requires the
// oldest version that works. It is built with the newest too.
type library struct{ path, oldest, newest string }

var libraries = map[string][]library{
	"adapters/logrus":     {{"github.com/sirupsen/logrus", "v1.8.3", "v1.10.2"}},
	"adapters/lumberjack": {},
	"adapters/renameio":   {},
	"adapters/otel":       {{"go.opentelemetry.io/otel", "v1.19.0", "v1.47.0"}, {"go.opentelemetry.io/otel/metric", "v1.19.0", "v1.47.0"}, {"go.opentelemetry.io/otel/sdk/metric", "v1.19.0", "v1.47.0"}},
	"adapters/prometheus": {{"github.com/prometheus/client_golang", "v1.11.1", "v1.25.0"}},
	"adapters/raft":       {{"github.com/hashicorp/raft", "v1.6.0", "v1.8.0"}, {"github.com/hashicorp/go-msgpack/v2", "v2.1.1", "v2.1.5"}, {"go.etcd.io/bbolt", "v1.3.6", "v1.5.0"}},
	"adapters/zap":        {{"go.uber.org/zap", "v1.18.1", "v1.28.0"}},
	"adapters/zerolog":    {{"github.com/rs/zerolog", "v1.13.0", "v1.35.1"}},
	"adapters/zstd":       {{"github.com/klauspost/compress", "v1.15.0", "v1.20.4"}},
}

// TestAdaptersRequireTheOldestThatWorks of each library, of Go and of golang.org/x/sys.
func TestAdaptersRequireTheOldestThatWorks(t *testing.T) {
	sys := goMod(t, ".").Require[0]
	for _, dir := range fetched(t) {
		all, ok := libraries[dir]
		if dir == "." || dir == "cmd" {
			continue
		}
		if !ok {
			t.Errorf("%s: say in libraries what it is for", dir)
		}
		mod := goMod(t, dir)
		if is, oldest := mod.Go, goMod(t, ".").Go; is != oldest {
			t.Errorf("%s needs Go %s, and the library %s", dir, is, oldest)
		}
		for _, r := range mod.Require {
			known := r.Indirect || r.Path == module || r == sys
			for _, l := range all {
				known = known || r.Path == l.path && r.Version == l.oldest
			}
			if !known {
				t.Errorf("%s requires %s %s; is it the oldest that works?", dir, r.Path, r.Version)
			}
		}
	}
}

// TestModulesCanBeFetched publishes all modules as a release does, and uses each from an empty module.
func TestModulesCanBeFetched(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command and each adapter anew; not with -short")
	}
	t.Parallel()
	p := newProxy(t)
	t.Run("command", func(t *testing.T) {
		p.must(t, t.TempDir(), "install", module+"/cmd/holdfast@"+published)
		for _, flag := range []string{"--version", "--help"} {
			if out, err := exec.Command(filepath.Join(p.bin, "holdfast"), flag).CombinedOutput(); err != nil || len(out) == 0 {
				t.Errorf("holdfast %s: %v\n%s", flag, err, out)
			}
		}
	})
	program := func(t *testing.T, path, text string, newest ...library) {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "user.go"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		p.must(t, dir, "mod", "init", "example.com/user")
		p.must(t, dir, "get", path+"@"+published)
		p.must(t, dir, "build", "-o", os.DevNull, ".")
		if len(newest) > 0 {
			// Not by go get: it asks one proxy after the other, what is in its cache before each, and is content with the
			// first in which a beginning of the path is a module. Where otel v1.47.0 is there before otel/sdk/metric, it
			// says that otel "does not contain package". A requirement names the module itself.
			edit := []string{"mod", "edit"}
			for _, l := range newest {
				edit = append(edit, "-require="+l.path+"@"+l.newest)
			}
			p.must(t, dir, edit...)
			p.must(t, dir, "build", "-o", os.DevNull, ".")
		}
	}
	for _, of := range fetched(t) {
		if path := goMod(t, of).Module.Path; of == "." {
			t.Run("library", func(t *testing.T) {
				program(t, path, "package main\n\nimport \""+path+"\"\n\nfunc main() { println(holdfast.Durable().String()) }\n")
			})
		} else if of != "cmd" {
			t.Run(of, func(t *testing.T) {
				t.Parallel() // most of it waits for modules of others
				program(t, path, "package user // a package takes no linking\n\nimport _ \""+path+"\"\n", libraries[of]...)
			})
		}
	}
}

// TestModulesAreTidy is go mod tidy -diff for the modules that require a release of the library. The sums
// of that are not known before it is published. With -update it tidies them.
func TestModulesAreTidy(t *testing.T) {
	if !*update {
		t.Parallel()
	}
	p := newProxy(t)
	for _, dir := range fetched(t) {
		if sum := filepath.Join(dir, "go.sum"); *update {
			p.must(t, dir, "mod", "tidy")
			text, err := os.ReadFile(sum)
			if err == nil {
				ours := regexp.MustCompile("(?m)^" + module + " .*\n")
				err = os.WriteFile(sum, ours.ReplaceAll(text, nil), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		out, _ := p.run(t, dir, "mod", "tidy", "-diff")
		for line := range strings.Lines(out) {
			changes := strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-")
			if changes && !strings.HasPrefix(line, "+++") && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "+"+module+" "+published) {
				t.Errorf("%s is not tidy:\n%s", dir, out)
				break
			}
		}
	}
}
