package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// tags returns the names of the tags of a version, such as v0.1.0: one for each module that somebody may fetch, which go
// finds by its directory. The modules below dev are for those who have the repository.
func tags(root, version string) (all []string, err error) {
	if !regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return nil, fmt.Errorf("-tags %q: no version; write it as v0.1.0", version)
	}
	for _, pattern := range []string{"go.mod", "cmd/go.mod", "adapters/*/go.mod"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("no module %s in %s", pattern, root)
		}
		if err != nil {
			return nil, err
		}
		for _, mod := range found {
			dir, err := filepath.Rel(root, filepath.Dir(mod))
			if err != nil {
				return nil, err
			}
			all = append(all, strings.TrimPrefix(filepath.ToSlash(dir)+"/"+version, "./"))
		}
	}
	return all, nil
}

// An archive is one of the release's, for one platform.
type archive struct{ System, Processor, Name, Sum string }

// A place is a release as Homebrew and Nix are told of it: where its files are, and their sums.
type place struct {
	Version, About, Home, Files string
	Archives                    []archive
}

// elsewhere writes a formula of Homebrew and an expression of Nix, which install the archives of the release. It writes none where
// their platforms were not built.
func (r *release) elsewhere() error {
	p := place{Version: r.version, About: strings.ToUpper(about[:1]) + about[1:], Home: home, Files: home + "/releases/download/v" + r.version + "/"}
	for _, of := range platforms[:4] { // Linux and macOS
		name := r.base(of) + ".tar.gz"
		if !slices.Contains(r.made, name) {
			continue
		}
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		p.Archives = append(p.Archives, archive{of.system, of.processor, name, sum})
	}
	if len(p.Archives) == 0 {
		return nil
	}
	return errors.Join(r.render("holdfast.rb", formula, p), r.render("holdfast.nix", expression, p))
}

func (r *release) render(name, text string, p place) error {
	t, err := template.New(name).Funcs(template.FuncMap{"on": on}).Parse(text)
	if err != nil {
		return err
	}
	return r.create(name, func(f *os.File) error { return t.Execute(f, p) })
}

// on says what Homebrew and Nix call a system or a processor.
func on(name string) string {
	return map[string]string{
		"brew linux": "linux", "brew darwin": "macos", "brew amd64": "intel", "brew arm64": "arm",
		"nix linux": "linux", "nix darwin": "darwin", "nix amd64": "x86_64", "nix arm64": "aarch64",
	}[name]
}

const formula = `class Holdfast < Formula
  desc "{{.About}}"
  homepage "{{.Home}}"
  version "{{.Version}}"
  license "BSD-3-Clause"
{{range .Archives}}
  on_{{on (print "brew " .System)}} do
    on_{{on (print "brew " .Processor)}} do
      url "{{$.Files}}{{.Name}}"
      sha256 "{{.Sum}}"
    end
  end
{{end}}
  def install
    bin.install "holdfast"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/holdfast.bash" => "holdfast"
    zsh_completion.install "completions/_holdfast"
    fish_completion.install "completions/holdfast.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/holdfast version")
  end
end
`

const expression = `{ lib, stdenvNoCC, fetchurl, installShellFiles }:
let
  archives = {
{{- range .Archives}}
    {{on (print "nix " .Processor)}}-{{on (print "nix " .System)}} = {
      url = "{{$.Files}}{{.Name}}";
      sha256 = "{{.Sum}}";
    };
{{- end}}
  };
in
stdenvNoCC.mkDerivation {
  pname = "holdfast";
  version = "{{.Version}}";
  src = fetchurl archives.${stdenvNoCC.hostPlatform.system};
  nativeBuildInputs = [ installShellFiles ];
  dontConfigure = true;
  dontBuild = true;
  installPhase = ''
    runHook preInstall
    install -Dm755 holdfast $out/bin/holdfast
    installManPage man/*.1
    installShellCompletion --cmd holdfast --bash completions/holdfast.bash --zsh completions/_holdfast --fish completions/holdfast.fish
    runHook postInstall
  '';
  meta = {
    description = "{{.About}}";
    homepage = "{{.Home}}";
    license = lib.licenses.bsd3;
    platforms = builtins.attrNames archives;
    mainProgram = "holdfast";
  };
}
`
