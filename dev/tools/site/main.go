// Command site renders the repository's pages as a site of static files, which any server shows, and a browser without one.
//
//	go -C dev/tools run ./site -o DIRECTORY
//
// Each page in Markdown that git knows becomes one in HTML. Links among them lead to the pages of the site. Other files below docs
// are copied if a page links to them; files elsewhere are linked in the repository.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const home = "https://github.com/holdfast-go/holdfast"

// recorded is the page about what programs have printed.
const recorded = "docs/measured/README.md"

func main() {
	out := flag.String("o", "", "the directory to make, by default site in the repository")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("git knows no repository here: %w", err)
	}
	root := strings.TrimSuffix(string(top), "\n")
	if out == "" {
		out = filepath.Join(root, "site")
	}
	pages, err := render(root, out)
	if err != nil {
		return err
	}
	fmt.Printf("%d pages: %s\n", pages, filepath.Join(out, "index.html"))
	return nil
}

// A site is one that is being rendered.
type site struct {
	root, out string
	pages     map[string]bool // in Markdown, by their paths from root
	copied    map[string]bool
}

// render makes the site of a repository in a new directory, and returns the number of its pages.
func render(root, out string) (pages int, err error) {
	list := exec.Command("git", "ls-files", "*.md")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		return 0, err
	}
	s := &site{root, out, map[string]bool{}, map[string]bool{}}
	for name := range strings.FieldsSeq(string(names)) {
		if !strings.Contains(name, "testdata/") && !strings.HasPrefix(name, ".github/") {
			s.pages[name] = true
		}
	}
	if err := os.Mkdir(out, 0o777); err != nil {
		return 0, fmt.Errorf("%w; a site is made in a new directory", err)
	}
	for name := range s.pages {
		if err := s.page(name); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	return len(s.pages), nil
}

// page renders one page.
func (s *site) page(name string) error {
	source, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	document := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	title, lead := "", ""
	if first, ok := document.FirstChild().(*ast.Heading); !ok || first.Level != 1 { // the output of a program, which says no name of its own
		title = strings.TrimSuffix(path.Base(name), ".md") + ", recorded in " + path.Dir(name)
		about, err := s.link(name, []byte(strings.Repeat("../", strings.Count(name, "/"))+recorded))
		if err != nil {
			return err
		}
		lead = fmt.Sprintf("<h1>%s</h1>\n<p>This page is the output of a program. <a href=\"%s\">The page about recorded runs</a> says which program it was.</p>\n", html.EscapeString(title), about)
	}
	err = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch n := n.(type) {
		case *ast.Heading:
			if title == "" {
				title = string(n.Lines().Value(source))
			}
		case *ast.Link:
			n.Destination, err = s.link(name, n.Destination)
		case *ast.Image:
			n.Destination, err = s.link(name, n.Destination)
		}
		return ast.WalkContinue, err
	})
	var body bytes.Buffer
	if err == nil {
		err = markdown.Renderer().Render(&body, source, document)
	}
	if err != nil {
		return err
	}
	to := filepath.Join(s.out, filepath.FromSlash(rendered(name)))
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	up := strings.Repeat("../", strings.Count(name, "/"))
	return errors.Join(frame.Execute(file, map[string]any{"Title": title, "Up": up, "Body": template.HTML(lead + body.String()), "Source": home + "/blob/main/" + name}), file.Close())
}

// rendered returns what a page in Markdown becomes.
func rendered(name string) string {
	dir, base := path.Split(name)
	if base == "README.md" {
		return dir + "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

// link returns where a link of a page leads in the site. It copies what belongs to it.
func (s *site) link(from string, to []byte) ([]byte, error) {
	u, err := url.Parse(string(to))
	if err != nil || u.Scheme != "" || u.Path == "" {
		return to, err
	}
	target := path.Join(path.Dir(from), u.Path)
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(target)))
	switch index := path.Join(target, "README.md"); {
	case err != nil:
		return nil, err
	case s.pages[target]:
		target = rendered(target)
	case s.pages[index]:
		target = rendered(index)
	case info.IsDir():
		return []byte(home + "/tree/main/" + target), nil
	case !strings.HasPrefix(target, "docs/"):
		return []byte(home + "/blob/main/" + target), nil
	default:
		if err := s.copy(target); err != nil {
			return nil, err
		}
	}
	relative, err := filepath.Rel(path.Dir(from), target)
	u.Path = filepath.ToSlash(relative)
	return []byte(u.String()), err
}

// copy copies a file into the site, once.
func (s *site) copy(name string) error {
	if s.copied[name] {
		return nil
	}
	s.copied[name] = true
	data, err := fs.ReadFile(os.DirFS(s.root), name)
	if err != nil {
		return err
	}
	to := filepath.Join(s.out, filepath.FromSlash(name))
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.WriteFile(to, data, 0o666))
}

// anchors names headings as GitHub does, for the links that lead to them.
type anchors struct{}

func (anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	name := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAll(bytes.ToLower(heading), nil)
	return bytes.ReplaceAll(name, []byte(" "), []byte("-"))
}

func (anchors) Put([]byte) {}

// frame is around each page. It loads nothing from elsewhere and runs no script.
var frame = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif }
nav a { margin-right: 1rem }
pre, table { overflow-x: auto; display: block }
pre { padding: .7rem; tab-size: 4; background: color-mix(in srgb, currentColor 7%, transparent) }
code { font-size: .9em }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent) }
img { max-width: 100%; background: white }
</style>
</head>
<body>
<nav><a href="{{.Up}}index.html">holdfast</a><a href="{{.Up}}docs/index.html">all pages</a><a href="{{.Up}}docs/install.html">install</a><a href="https://pkg.go.dev/github.com/holdfast-go/holdfast">packages</a><a href="{{.Source}}">source</a></nav>
<main>
{{.Body}}</main>
</body>
</html>
`))
