// Once counts the functions of this module that are used in exactly one place, outside of
// tests. A function that was cut off only to be short costs its reader a jump for nothing.
// It prints a line for each package and one for all, and with -v each such function.
//
//	go -C tools run ./once [-v] [-most PERCENT] [-elsewhere PERCENT] [packages]
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/holdfast-go/holdfast"

// A function is a function with a body, and where it is declared and used.
type function struct {
	name, room string
	uses       int
	at, usedAt token.Position
}

// A count counts functions.
type count struct{ all, once, elsewhere int }

func (c *count) add(f *function) {
	c.all++
	if f.uses == 1 {
		c.once++
		if f.at.Filename != f.usedAt.Filename {
			c.elsewhere++
		}
	}
}

func (c count) percent(n int) float64 { return 100 * float64(n) / float64(max(c.all, 1)) }

func (c count) String() string {
	return fmt.Sprintf("%5d functions, used in one place %4.1f %%, which is in another file %4.1f %%",
		c.all, c.percent(c.once), c.percent(c.elsewhere))
}

func main() {
	verbose := flag.Bool("v", false, "print each function that is used in one place")
	most := flag.Float64("most", 100, "exit with 1 if more than these `percent` are used in one place")
	elsewhere := flag.Float64("elsewhere", 100, "exit with 1 if more than these `percent` are used in one place of another file")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps, Dir: ".."},
		patterns...)
	if err != nil || packages.PrintErrors(loaded) > 0 {
		fmt.Fprintln(os.Stderr, "once: the packages can't be read:", err)
		os.Exit(2)
	}
	all, rooms := counted(loaded), map[string]*count{}
	whole := count{}
	for _, f := range all {
		if rooms[f.room] == nil {
			rooms[f.room] = &count{}
		}
		rooms[f.room].add(f)
		whole.add(f)
		if *verbose && f.uses == 1 {
			fmt.Printf("%s:%d: %s, used at %s:%d\n", f.at.Filename, f.at.Line, f.name, f.usedAt.Filename, f.usedAt.Line)
		}
	}
	names := make([]string, 0, len(rooms))
	for name := range rooms {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Printf("%-40s %v\n", name, *rooms[name])
	}
	fmt.Printf("%-40s %v\n", "all", whole)
	if whole.percent(whole.once) > *most || whole.percent(whole.elsewhere) > *elsewhere {
		fmt.Fprintf(os.Stderr, "once: more than %g %% or %g %%: merge what is one thought\n", *most, *elsewhere)
		os.Exit(1)
	}
}

// counted returns the functions of packages in the order of their files.
func counted(loaded []*packages.Package) []*function {
	byPlace := map[token.Position]*function{}
	var all []*function
	for _, p := range loaded {
		for _, file := range p.Syntax {
			for _, d := range file.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil && d.Name.Name != "main" && d.Name.Name != "init" {
					room := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, module), "/"), ".")
					f := &function{name: d.Name.Name, room: room, at: p.Fset.Position(d.Name.Pos())}
					byPlace[f.at] = f
					all = append(all, f)
				}
			}
		}
	}
	for _, p := range loaded {
		for id, object := range p.TypesInfo.Uses {
			used, ok := object.(*types.Func)
			if !ok {
				continue
			}
			if f := byPlace[p.Fset.Position(used.Origin().Pos())]; f != nil {
				f.uses++
				f.usedAt = p.Fset.Position(id.Pos())
			}
		}
	}
	return all
}
