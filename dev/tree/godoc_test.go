package tree

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fetchedPackages are the directories of all packages that others may import.
func fetchedPackages(t *testing.T) (dirs []string) {
	t.Helper()
	for _, dir := range goDirs(t) {
		parts := strings.Split(filepath.ToSlash(dir), "/")
		if parts[0] == "cmd" || parts[0] == "dev" || parts[0] == "docs" || strings.Contains("/"+filepath.ToSlash(dir)+"/", "/internal/") {
			continue
		}
		dirs = append(dirs, dir)
	}
	if len(dirs) < 15 {
		t.Fatalf("only the packages %v", dirs)
	}
	return dirs
}

// documentation parses a package and its tests as pkg.go.dev does.
func documentation(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set, own := token.NewFileSet(), ""
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			own = file.Name.Name
		}
		files = append(files, file)
	}
	for i := len(files) - 1; i >= 0; i-- { // programs that are run to make files stand beside some
		if name := strings.TrimSuffix(files[i].Name.Name, "_test"); name != own {
			files = append(files[:i], files[i+1:]...)
		}
	}
	pkg, err := doc.NewFromFiles(set, files, module+"/"+filepath.ToSlash(dir), doc.Mode(0))
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// examplesOf counts the examples of a package, of its functions and of its types.
func examplesOf(pkg *doc.Package) int {
	n := len(pkg.Examples)
	for _, f := range pkg.Funcs {
		n += len(f.Examples)
	}
	for _, x := range pkg.Types {
		n += len(x.Examples)
		for _, f := range append(x.Funcs, x.Methods...) {
			n += len(f.Examples)
		}
	}
	return n
}

// TestEachPackageShowsItsUse: an example is the first thing that a reader of pkg.go.dev looks for.
func TestEachPackageShowsItsUse(t *testing.T) {
	for _, dir := range fetchedPackages(t) {
		if examplesOf(documentation(t, dir)) == 0 {
			t.Errorf("%s has no example", dir)
		}
	}
}

// looksLinked matches text that a writer meant as a link: a name with a capital in brackets, maybe of a package.
var looksLinked = regexp.MustCompile(`\[(\*?([a-z]\w*\.)?[A-Z]\w*(\.\w+)?)\]`)

// TestLinksOfCommentsLeadSomewhere: what pkg.go.dev can't resolve it shows in brackets. A link to a page here needs the page.
func TestLinksOfCommentsLeadSomewhere(t *testing.T) {
	found := 0
	for _, dir := range fetchedPackages(t) {
		pkg := documentation(t, dir)
		check := func(of, text string) {
			links, broken := linksOf(pkg.Parser().Parse(text))
			for _, m := range broken {
				t.Errorf("%s, %s: %s leads nowhere", dir, of, m)
			}
			for _, link := range links {
				found++
				if page, ok := strings.CutPrefix(link, "https://"+module+"/blob/main/"); ok {
					page, _, _ = strings.Cut(page, "#")
					if _, err := os.Stat(filepath.FromSlash(page)); err != nil {
						t.Errorf("%s, %s: %s: %v", dir, of, link, err)
					}
				}
			}
		}
		check("package", pkg.Doc)
		values := append(pkg.Consts, pkg.Vars...)
		funcs := pkg.Funcs
		for _, x := range pkg.Types {
			check(x.Name, x.Doc)
			values = append(append(values, x.Consts...), x.Vars...)
			funcs = append(append(funcs, x.Funcs...), x.Methods...)
		}
		for _, v := range values {
			check(strings.Join(v.Names, ", "), v.Doc)
		}
		for _, f := range funcs {
			check(f.Name, f.Doc)
		}
	}
	if found < 20 {
		t.Errorf("only %d links were found", found)
	}
}

// linksOf returns the links of a comment, and texts that look like a link and are none.
func linksOf(d *comment.Doc) (links, broken []string) {
	inText := func(all []comment.Text) {
		for _, x := range all {
			switch x := x.(type) {
			case comment.Plain:
				broken = append(broken, looksLinked.FindAllString(string(x), -1)...)
			case *comment.Link:
				links = append(links, x.URL)
			case *comment.DocLink:
				links = append(links, x.DefaultURL(""))
			}
		}
	}
	var inBlocks func(all []comment.Block)
	inBlocks = func(all []comment.Block) {
		for _, b := range all {
			switch b := b.(type) {
			case *comment.Heading:
				inText(b.Text)
			case *comment.Paragraph:
				inText(b.Text)
			case *comment.List:
				for _, item := range b.Items {
					inBlocks(item.Content)
				}
			}
		}
	}
	inBlocks(d.Content)
	return links, broken
}
