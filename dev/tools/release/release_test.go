package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const root = "../../.."

// TestNoticeNamesAllThatIsLinked fails when the command links another module, or one with another
// licence, and NOTICE does not say so.
func TestNoticeNamesAllThatIsLinked(t *testing.T) {
	want, err := noticeOf(root, platforms)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		head := func(text string) string { head, _, _ := strings.Cut(text, "\n====="); return head }
		t.Errorf("NOTICE is not what is linked; write it by: go -C dev/tools/release run . -notice\nit begins\n%s\nand should\n%s", head(string(got)), head(want))
	}
}

func TestLicencesThatMayBeLinked(t *testing.T) {
	mit, err := os.ReadFile("testdata/MIT")
	if err != nil {
		t.Fatal(err)
	}
	gpl := []byte("GNU GENERAL PUBLIC LICENSE\nVersion 2, June 1991\nThis program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation; either version 2 of the License, or (at your option) any later version.\n")
	check := func(want string, texts ...file) {
		t.Helper()
		ids, err := linked{"example.com/m", texts}.licences()
		if got := fmt.Sprint(ids, err); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check("[MIT] <nil>", file{"LICENSE", 0, mit})
	check("[MIT] <nil>", file{"LICENSE", 0, mit}, file{"b/LICENSE", 0, mit})
	check("[] example.com/m: no licence; it has the files []")
	check("[] example.com/m: no licence; it has the files [NOTICE]", file{"NOTICE", 0, []byte("ask us")})
	check("[] example.com/m: LICENSE is no licence that may be linked", file{"LICENSE", 0, gpl})
}

func TestLicencesAreFoundByName(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(below, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"LICENSE", "a/COPYING.txt", "a/license.go", "a/b/chart.js.LICENSE", "a/b/licensed.txt", "a/b/OFL.txt", "a/b/UNLICENSE", "a/b/LICENSE-MIT.md"} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	found, err := licencesIn(dir, below)
	if got, want := names(found), []string{"a/b/LICENSE-MIT.md", "a/b/OFL.txt", "a/b/UNLICENSE", "a/b/chart.js.LICENSE", "a/COPYING.txt", "LICENSE"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// TestTwoReleasesAreEqual builds this machine's platform twice, each time from another directory, and
// looks into what came out. The packages of Debian and RPM are left out: nfpm takes minutes to build.
func TestTwoReleasesAreEqual(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command twice; not with -short")
	}
	if _, err := command(root, "git", "rev-parse", "HEAD"); err != nil {
		t.Skip("not a clone of the repository: ", err)
	}
	here := platform{runtime.GOOS, runtime.GOARCH}
	var made [2]*release
	for i := range made {
		t.Setenv("TMPDIR", t.TempDir())
		r, err := build(root, "HEAD", filepath.Join(t.TempDir(), "out"), []platform{here}, false)
		if err != nil {
			t.Fatal(err)
		}
		made[i] = r
	}
	a, b := made[0], made[1]
	if !slices.Equal(a.made, b.made) || len(a.made) < 4 {
		t.Fatalf("%q and %q", a.made, b.made)
	}
	for _, name := range a.made {
		if of, and := read(t, a, name), read(t, b, name); !bytes.Equal(of, and) {
			t.Errorf("two builds of %s differ", name)
		}
	}
	sumsHold(t, a)
	base := fmt.Sprintf("holdfast-%s-%s-%s", a.version, here.system, here.processor)
	var files map[string]file
	if here.system == "windows" {
		files = unzip(t, read(t, a, base+".zip"))
	} else {
		files = untar(t, gunzip(t, read(t, a, base+".tar.gz")), a.when)
	}
	name := base + "/holdfast"
	if here.system == "windows" {
		name += ".exe"
	}
	for _, want := range []string{name, base + "/LICENSE", base + "/NOTICE", base + "/README.md", base + "/man/holdfast.1", base + "/man/holdfast-bench.1", base + "/completions/holdfast.bash"} {
		if len(files[want].data) == 0 {
			t.Errorf("the archive has no %s", want)
		}
	}
	binary := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(binary, files[name].data, files[name].mode); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(binary, "version").Output()
	if want := fmt.Sprintf("%s, %s/%s", a.toolsGo, here.system, here.processor); err != nil || !strings.Contains(string(said), a.commit[:12]) || !strings.Contains(string(said), want) {
		t.Errorf("version says %q, %v; the commit is %s, and the rest %s", said, err, a.commit, want)
	}
	billIsWhole(t, read(t, a, base+".cdx.json"), binary)
	if here.system == "linux" {
		imageIsWhole(t, a, read(t, a, base+".oci.tar"), files[name].data)
	}
}

func read(t *testing.T, r *release, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sumsHold holds SHA256SUMS and the subjects of the provenance to the files.
func sumsHold(t *testing.T, r *release) {
	t.Helper()
	listed := string(read(t, r, "SHA256SUMS"))
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []subject
		Predicate     struct {
			BuildDefinition struct {
				BuildType          string
				ExternalParameters struct{ Commit string }
				InternalParameters struct {
					Signed *bool
					Repeat string
				}
				ResolvedDependencies []subject
			}
			RunDetails struct{ Builder struct{ ID string } }
		}
	}
	if err := json.Unmarshal(read(t, r, "holdfast-"+r.version+".provenance.json"), &statement); err != nil {
		t.Fatal(err)
	}
	if d := statement.Predicate.BuildDefinition; d.ExternalParameters.Commit != r.commit || d.InternalParameters.Signed == nil || *d.InternalParameters.Signed {
		t.Errorf("the provenance names the commit %s of %s, and does not say that nobody signed it", d.ExternalParameters.Commit, r.commit)
	}
	// in-toto.io/Statement/v1 and slsa.dev/provenance/v1 fix the two types, and ask that buildType and builder.id be URIs.
	p := statement.Predicate
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" ||
		!strings.HasPrefix(p.BuildDefinition.BuildType, home) || !strings.HasPrefix(p.RunDetails.Builder.ID, home) {
		t.Errorf("the provenance has another form: %+v", statement)
	}
	if d := p.BuildDefinition.ResolvedDependencies; len(d) != 1 || d[0].URI != "git+"+home || d[0].Digest["gitCommit"] != r.commit {
		t.Errorf("the provenance resolves %+v", d)
	}
	if repeat, want := p.BuildDefinition.InternalParameters.Repeat, fmt.Sprintf(" -commit %s -platforms %s/%s -packages=false", r.commit, runtime.GOOS, runtime.GOARCH); !strings.HasSuffix(repeat, want) {
		t.Errorf("the provenance is repeated by %q, want %q", repeat, want)
	}
	subjects := map[string]string{}
	for _, s := range statement.Subject {
		subjects[s.Name] = s.Digest["sha256"]
	}
	for _, name := range r.made {
		sum := sha(read(t, r, name))
		if name != "SHA256SUMS" && !strings.Contains(listed, sum+"  "+name+"\n") {
			t.Errorf("SHA256SUMS does not have %s with %s", name, sum)
		}
		if !strings.HasSuffix(name, ".provenance.json") && name != "SHA256SUMS" && subjects[name] != sum {
			t.Errorf("the provenance says %q of %s", subjects[name], name)
		}
	}
}

// billIsWhole compares a bill of materials with the binary's own build information.
func billIsWhole(t *testing.T, text []byte, binary string) {
	t.Helper()
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	bom := cdx.BOM{}
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if got, want := len(*bom.Components), len(info.Deps)+1; got != want || want < 5 {
		t.Errorf("the bill of materials has %d components, want %d", got, want)
	}
	purl := regexp.MustCompile(`^pkg:golang/[a-zA-Z0-9._/-]+@v?[0-9][a-z0-9.-]*$`) // "(devel)" is no version that a scanner knows
	for i, c := range append([]cdx.Component{*bom.Metadata.Component}, *bom.Components...) {
		want := info.Main // of which the library is too
		if i > 1 && info.Deps[i-2].Path != module {
			want = *info.Deps[i-2]
		}
		if c.Licenses == nil || len(*c.Licenses) == 0 || !purl.MatchString(c.PackageURL) || i != 1 && c.Version != want.Version || i == 0 && c.Name != want.Path {
			t.Errorf("%s of %s %s has the licences %v", c.PackageURL, c.Name, c.Version, c.Licenses)
		}
	}
}

// imageIsWhole follows an OCI layout from its index to the command.
func imageIsWhole(t *testing.T, r *release, layout, code []byte) {
	t.Helper()
	files := untar(t, layout, r.when)
	blob := func(d v1.Descriptor) []byte {
		data := files["blobs/sha256/"+d.Digest.Encoded()].data
		if digest.FromBytes(data) != d.Digest || int64(len(data)) != d.Size {
			t.Fatalf("the blob %v has %d bytes and the digest %v", d, len(data), digest.FromBytes(data))
		}
		return data
	}
	decode := func(data []byte, into any) {
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	var index v1.Index
	var manifest v1.Manifest
	var config v1.Image
	decode(files[v1.ImageIndexFile].data, &index)
	decode(blob(index.Manifests[0]), &manifest)
	decode(blob(manifest.Config), &config)
	plain := gunzip(t, blob(manifest.Layers[0]))
	if config.RootFS.DiffIDs[0] != digest.FromBytes(plain) {
		t.Error("the layer is not the one that the configuration names")
	}
	if inside := untar(t, plain, r.when); !bytes.Equal(inside["holdfast"].data, code) || inside["holdfast"].mode != 0o755 || config.Config.Entrypoint[0] != "/holdfast" {
		t.Errorf("the image runs %q, and has no such command", config.Config.Entrypoint)
	}
	if config.Config.User != "65532:65532" {
		t.Errorf("the image runs as %q", config.Config.User)
	}
	for r := tar.NewReader(bytes.NewReader(plain)); ; {
		head, err := r.Next()
		if err != nil {
			t.Fatal("the image has no /data that each user may write to: ", err)
		}
		if head.Name == "data/" && head.FileInfo().Mode() == fs.ModeDir|0o777 {
			break
		}
	}
}

// TestEachModuleHasATag holds the tags of a version to the modules of the tree, and the page to the tags.
func TestEachModuleHasATag(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch name = filepath.ToSlash(name); {
		case err != nil:
			return err
		case d.IsDir() && (name == "dev" || d.Name() == "testdata" || name != "." && strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case d.Name() == "go.mod":
			want[strings.TrimSuffix(name, "go.mod")+"v0.1.0"] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := tags(root, "v0.1.0")
	if err != nil || len(all) != len(want) || len(all) < 10 {
		t.Errorf("%d modules have the tags %v, %v", len(want), all, err)
	}
	for _, tag := range all {
		if !want[tag] {
			t.Errorf("the tag %s is of no module", tag)
		}
	}
	if list := "\n" + strings.Join(all, "\n") + "\n"; !strings.Contains(string(page), list) {
		t.Errorf("CONTRIBUTING.md does not list the tags:%s", list)
	}
	for _, version := range []string{"0.1.0", "v1", "v0.1.0 v0.2.0", "v0.1.0/..", "v0.1.0\n"} {
		if _, err := tags(root, version); err == nil {
			t.Errorf("%q is a version", version)
		}
	}
}

// TestHomebrewAndNixGetTheArchives renders the formula and the expression of some archives, and lets the programs that read them
// say whether they can.
func TestHomebrewAndNixGetTheArchives(t *testing.T) {
	r := &release{out: t.TempDir(), version: "0.1.0"}
	for _, p := range platforms {
		if name := r.base(p) + ".tar.gz"; p.system != "darwin" || p.processor != "amd64" { // one was not built
			if err := r.create(name, func(f *os.File) error { _, err := f.WriteString(name); return err }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.elsewhere(); err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]struct {
		check     []string
		opens     string // the marker that begins a part
		ends      string
		platforms map[string]string
	}{
		"holdfast.rb":  {[]string{"ruby", "-c"}, `(?m)\bdo$|^ *(class|def) `, `(?m)^ *end$`, map[string]string{"linux-amd64": "on_linux do\n    on_intel do", "linux-arm64": "on_linux do\n    on_arm do", "darwin-arm64": "on_macos do\n    on_arm do"}},
		"holdfast.nix": {[]string{"nix-instantiate", "--parse"}, `[{(\[]`, `[])}]`, map[string]string{"linux-amd64": "x86_64-linux = {", "linux-arm64": "aarch64-linux = {", "darwin-arm64": "aarch64-darwin = {"}},
	} {
		text := string(read(t, r, name))
		for of, head := range form.platforms {
			archive := "holdfast-0.1.0-" + of + ".tar.gz"
			_, part, ok := strings.Cut(text, head)
			part, _, _ = strings.Cut(part, "sha256")
			if !ok || !strings.Contains(part, `"https://github.com/holdfast-go/holdfast/releases/download/v0.1.0/`+archive+`"`) || !strings.Contains(text, `"`+sha([]byte(archive))+`"`) {
				t.Errorf("%s does not have %s:\n%s", name, archive, text)
			}
		}
		if n := strings.Count(text, "/releases/download/"); n != len(form.platforms) {
			t.Errorf("%s has %d archives", name, n)
		}
		opened, ended := regexp.MustCompile(form.opens).FindAllString(text, -1), regexp.MustCompile(form.ends).FindAllString(text, -1)
		if len(opened) != len(ended) || len(opened) < 8 || strings.Contains(text, "<no value>") {
			t.Errorf("%s begins %d parts and ends %d:\n%s", name, len(opened), len(ended), text)
		}
		if _, err := exec.LookPath(form.check[0]); err != nil {
			t.Logf("not read by %s, which is not here", form.check[0])
			continue
		}
		cmd := exec.Command(form.check[0], append(form.check[1:], filepath.Join(r.out, name))...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "NIX_STATE_DIR="+t.TempDir(), "NIX_STORE_DIR="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
}

func gunzip(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// untar returns the regular files of an archive. Each has to be of one time, and of root.
func untar(t *testing.T, data []byte, when time.Time) map[string]file {
	t.Helper()
	files := map[string]file{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !head.ModTime.Equal(when) || head.Uid != 0 || head.Gid != 0 {
			t.Errorf("%s is of %v and user %d", head.Name, head.ModTime, head.Uid)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[head.Name] = file{head.Name, fs.FileMode(head.Mode), text}
	}
}

func unzip(t *testing.T, data []byte) map[string]file {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]file{}
	for _, entry := range r.File {
		f, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name] = file{entry.Name, entry.Mode(), text}
	}
	return files
}

// TestZipIsTheSameEachTime holds what Windows gets, which no build on another system reads.
func TestZipIsTheSameEachTime(t *testing.T) {
	when := time.Date(2026, 11, 23, 12, 30, 42, 0, time.UTC)
	var a, b bytes.Buffer
	for _, w := range []io.Writer{&a, &b} {
		if err := writeZip(w, "holdfast-1", []file{{"holdfast.exe", 0o755, []byte("MZ")}, {"man/holdfast.1", 0o644, []byte(".TH")}}, when); err != nil {
			t.Fatal(err)
		}
	}
	files := unzip(t, a.Bytes())
	if !bytes.Equal(a.Bytes(), b.Bytes()) || string(files["holdfast-1/holdfast.exe"].data) != "MZ" || files["holdfast-1/man/holdfast.1"].mode != 0o644 {
		t.Errorf("%v", files)
	}
}

// TestEveryFileOfAPackageHasAPlace holds what Debian and RPM install.
func TestEveryFileOfAPackageHasAPlace(t *testing.T) {
	check := func(name, deb, rpm string) {
		t.Helper()
		if got, other := installed(name, "deb"), installed(name, "rpm"); got != deb || other != rpm {
			t.Errorf("%s goes to %q and %q, want %q and %q", name, got, other, deb, rpm)
		}
	}
	check("holdfast", "/usr/bin/holdfast", "/usr/bin/holdfast")
	check("man/holdfast-bench.1", "/usr/share/man/man1/holdfast-bench.1.gz", "/usr/share/man/man1/holdfast-bench.1.gz")
	check("completions/_holdfast", "/usr/share/zsh/vendor-completions/_holdfast", "/usr/share/zsh/site-functions/_holdfast")
	check("completions/holdfast.ps1", "", "")
	check("NOTICE", "/usr/share/doc/holdfast/NOTICE", "/usr/share/doc/holdfast/NOTICE")
	check("CHANGELOG.md", "/usr/share/doc/holdfast/changelog.gz", "/usr/share/doc/holdfast/changelog.gz")
	check("LICENSE", "/usr/share/doc/holdfast/copyright", "/usr/share/doc/holdfast/copyright")
}
