// Command release makes all that a release of holdfast has, from one commit. That is archives,
// packages for Debian and for RPM, container images, bills of materials, provenance, and sums. Two
// runs for one commit and one Go make the same bytes.
//
//	go -C dev/tools/release run . [-commit COMMIT] [-o DIRECTORY] [-platforms OS/ARCH,...] [-packages=false]
//	go -C dev/tools/release run . -notice
//	go -C dev/tools/release run . -tags v0.1.0
//
// It builds a clone of the commit, never the working directory. With -notice it writes
// NOTICE: the licences of all that the command links. With -tags it prints the tags of a version, one for each module.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	module = "github.com/holdfast-go/holdfast"
	home   = "https://" + module
	about  = "measure what it costs to keep what a program writes"
	more   = "holdfast measures what it costs until written bytes are on the disk, chooses\n" +
		"the cheapest policy that loses no more than is allowed, and proves by crashes\n" +
		"what is lost. It says whether a disk is fast enough for etcd and others."
)

// A platform is a system and a processor.
type platform struct{ system, processor string }

// platforms are the platforms of a release.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}, {"freebsd", "amd64"}, {"freebsd", "arm64"},
}

// A release is one on its way.
type release struct {
	source   string    // a clone of the commit
	out      string    // the directory of the output
	commit   string    // its whole name
	when     time.Time // the commit's; the only time in any file
	version  string    // as the binaries say it, without the v
	toolsGo  string    // the Go that built them
	packages bool      // .deb and .rpm too
	made     []string  // names of files in out
}

func main() {
	commit := flag.String("commit", "HEAD", "the commit to build")
	out := flag.String("o", "", "the directory to make, by default dist in the repository")
	only := flag.String("platforms", "", "systems and processors, by default all: linux/amd64,darwin/arm64")
	packages := flag.Bool("packages", true, "make .deb and .rpm too")
	notice := flag.Bool("notice", false, "write NOTICE and end")
	version := flag.String("tags", "", "print the tags of this version, such as v0.1.0, and end")
	flag.Parse()
	if err := run(*commit, *out, *only, *packages, *notice, *version); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(commit, out, only string, packages, notice bool, version string) error {
	root, err := command("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if version != "" {
		all, err := tags(root, version)
		fmt.Println(strings.Join(all, "\n"))
		return err
	}
	if notice {
		text, err := noticeOf(root, platforms)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(root, "NOTICE"), []byte(text), 0o644)
	}
	chosen := platforms
	if only != "" {
		chosen = nil
		for name := range strings.SplitSeq(only, ",") {
			system, processor, ok := strings.Cut(name, "/")
			if !ok {
				return fmt.Errorf("-platforms: %q has no processor; write it as linux/amd64", name)
			}
			chosen = append(chosen, platform{system, processor})
		}
	}
	if out == "" {
		out = filepath.Join(root, "dist")
	}
	r, err := build(root, commit, out, chosen, packages)
	if err != nil {
		return err
	}
	fmt.Printf("holdfast %s, commit %s, %s: %d files in %s\n", r.version, r.commit, r.toolsGo, len(r.made), out)
	return nil
}

// build makes the release of a commit of the repository root in the new directory out. A directory
// that exists is refused.
func build(root, commit, out string, chosen []platform, packages bool) (r *release, err error) {
	work, err := os.MkdirTemp("", "holdfast-release-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	r = &release{source: filepath.Join(work, "source"), packages: packages}
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if r.commit, err = command(root, "git", "rev-parse", "--verify", commit+"^{commit}"); err != nil {
		return nil, err
	}
	seconds, err := command(root, "git", "show", "--no-patch", "--format=%ct", r.commit)
	if err != nil {
		return nil, err
	}
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	r.when = time.Unix(epoch, 0).UTC()
	if _, err := command(root, "git", "clone", "--quiet", "--no-checkout", root, r.source); err != nil {
		return nil, err
	}
	if _, err := command(r.source, "git", "checkout", "--quiet", "--detach", r.commit); err != nil {
		return nil, err
	}
	if err := os.Mkdir(r.out, 0o777); err != nil {
		return nil, fmt.Errorf("%w; a release is made in a new directory", err)
	}
	common, err := r.common()
	if err != nil {
		return nil, err
	}
	for _, p := range chosen {
		binary, err := r.compile(p)
		if err != nil {
			return nil, err
		}
		if err := r.pack(p, binary, common); err != nil {
			return nil, err
		}
	}
	if err := r.elsewhere(); err != nil {
		return nil, err
	}
	return r, errors.Join(r.provenance(chosen), r.sums())
}

// compile builds the command for a platform once, without cgo, so that it runs on any of its systems.
func (r *release) compile(p platform) (binary string, err error) {
	binary = r.source + "-" + p.system + "-" + p.processor
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", binary, "./cmd/holdfast")
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "GOOS="+p.system, "GOARCH="+p.processor, "CGO_ENABLED=0",
		"GOFLAGS=-mod=readonly", "GOWORK="+filepath.Join(r.source, "go.work"), "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build for %s/%s: %w\n%s", p.system, p.processor, err, out)
	}
	return binary, nil
}

// common returns the files that are the same on every platform. It builds the command for this one,
// which writes its own pages and completions, and says the release's version.
func (r *release) common() (files []file, err error) {
	binary, err := r.compile(platform{runtime.GOOS, runtime.GOARCH})
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	r.version, r.toolsGo = strings.TrimPrefix(info.Main.Version, "v"), info.GoVersion
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, data})
	}
	for shell, name := range map[string]string{"bash": "holdfast.bash", "zsh": "_holdfast", "fish": "holdfast.fish", "powershell": "holdfast.ps1"} {
		script, err := exec.Command(binary, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("holdfast completion %s: %w", shell, err)
		}
		files = append(files, file{"completions/" + name, 0o644, script})
	}
	pages := binary + "-man"
	if _, err := command("", binary, "man", pages); err != nil {
		return nil, err
	}
	err = fs.WalkDir(os.DirFS(pages), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(pages, name))
		files = append(files, file{"man/" + name, 0o644, data})
		return err
	})
	return files, err
}

// create makes a file of the release.
func (r *release) create(name string, write func(f *os.File) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	r.made = append(r.made, name)
	return errors.Join(write(f), f.Close())
}

// sum returns the SHA-256 of a file of the release, in hexadecimal digits.
func (r *release) sum(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.out, name))
	return sha(data), err
}

func sha(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// sums writes SHA256SUMS as sha256sum(1) checks it.
func (r *release) sums() error {
	var text strings.Builder
	for _, name := range r.made {
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, name)
	}
	return r.create("SHA256SUMS", func(f *os.File) error {
		_, err := f.WriteString(text.String())
		return err
	})
}

// command runs a program in a directory and returns what it printed, without the last line feed.
func command(dir string, args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
