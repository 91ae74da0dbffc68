package tree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	modversion "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// published is the version under which the modules require each other.
const published = "v0.1.0"

// unreachable is what go says where no proxy answers.
var unreachable = regexp.MustCompile(`dial tcp|no such host|connection refused|proxyconnect|i/o timeout|TLS handshake|module lookup disabled|5\d\d (Bad|Service|Gateway)`)

// A proxy is a directory in the layout of GOPROXY with every module that somebody may fetch, and the
// environment in which go takes them from there, with no workspace.
type proxy struct {
	env []string
	bin string // GOBIN
}

func newProxy(t *testing.T) proxy {
	t.Helper()
	dir := t.TempDir()
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
	bin := t.TempDir()
	return proxy{bin: bin, env: append(os.Environ(), "GOWORK=off", "GOSUMDB=off", "GOMODCACHE="+t.TempDir(), "GOFLAGS=-mod=mod -modcacherw -trimpath",
		"CGO_ENABLED=0", "GOBIN="+bin, "GOPROXY="+strings.Join([]string{fileURL(dir), fileURL(filepath.Join(cache, "cache", "download")), others}, ","))}
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

// TestModulesCanBeFetched publishes all modules as a release does, and uses each from an empty module.
func TestModulesCanBeFetched(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command and each adapter anew; not with -short")
	}
	p := newProxy(t)
	t.Run("command", func(t *testing.T) {
		p.must(t, t.TempDir(), "install", module+"/cmd/holdfast@"+published)
		for _, flag := range []string{"--version", "--help"} {
			if out, err := exec.Command(filepath.Join(p.bin, "holdfast"), flag).CombinedOutput(); err != nil || len(out) == 0 {
				t.Errorf("holdfast %s: %v\n%s", flag, err, out)
			}
		}
	})
	program := func(t *testing.T, path, text string) {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		p.must(t, dir, "mod", "init", "example.com/user")
		p.must(t, dir, "get", path+"@"+published)
		p.must(t, dir, "build", "-o", os.DevNull, ".")
	}
	for _, of := range fetched(t) {
		if path := goMod(t, of).Module.Path; of == "." {
			t.Run("library", func(t *testing.T) {
				program(t, path, "package main\n\nimport \""+path+"\"\n\nfunc main() { println(holdfast.Durable().String()) }\n")
			})
		} else if of != "cmd" {
			t.Run(of, func(t *testing.T) {
				program(t, path, "package main\n\nimport _ \""+path+"\"\n\nfunc main() {}\n")
			})
		}
	}
}

// TestModulesAreTidy is go mod tidy -diff for the modules that require a release of the library. The sums
// of that are not known before it is published. With -update it tidies them.
func TestModulesAreTidy(t *testing.T) {
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
