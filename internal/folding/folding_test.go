package folding

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/sys"
)

// A directory maps the names that it tells apart to their files.
type directory struct {
	files map[string]uint64
	fold  func(string) string
	last  uint64
}

func (d *directory) stat(name sys.Name) (sys.Stat, error) {
	if inode, ok := d.files[d.fold(name.String())]; ok {
		return sys.Stat{Device: 1, Inode: inode, Links: 1}, nil
	}
	return sys.Stat{}, fs.ErrNotExist
}

// put gives a new file the name, in place of the earlier file.
func (d *directory) put(name string) func() error {
	return func() error {
		d.last++
		d.files[d.fold(name)] = d.last
		return nil
	}
}

func TestANameThatFoldsIntoOneOfTheCallIsRefused(t *testing.T) {
	// the accent of its own is what a table of letters does not fold
	accents := strings.NewReplacer("e\u0301", "é")
	check := func(fold func(string) string, before []string, names string, taken string) {
		t.Helper()
		d := &directory{files: map[string]uint64{}, fold: fold}
		for _, name := range before {
			_ = d.put(name)()
		}
		var n Names
		refused := ""
		for _, name := range strings.Fields(names) {
			before := d.files[d.fold(name)]
			err := n.Give(sys.Name(name+"\x00"), d.stat, d.put(name))
			var is *TakenError
			switch {
			case errors.As(err, &is):
				refused += " " + is.Other + "<" + is.Name
				if d.files[d.fold(name)] != before {
					t.Errorf("%s was replaced", name)
				}
			case err != nil:
				t.Error(err)
			}
		}
		if strings.TrimSpace(refused) != taken {
			t.Errorf("%s: %q, want %q", names, refused, taken)
		}
	}
	same := func(s string) string { return s }
	check(same, nil, "A a É é", "")
	check(strings.ToLower, nil, "A a B É é A", "A<a É<é")
	check(strings.ToLower, []string{"a", "b"}, "A b A B", "b<B")
	check(accents.Replace, nil, "é e\u0301 x", "é<e\u0301")
}

// exFAT's inodes change when the kernel drops them.
func TestAFileWhoseNumberChangesIsKnownByItsName(t *testing.T) {
	d := &directory{files: map[string]uint64{}, fold: strings.ToLower}
	var n Names
	if err := n.Give("A\x00", d.stat, d.put("A")); err != nil {
		t.Fatal(err)
	}
	_ = d.put("a")() // another number
	if err := n.Give("a\x00", d.stat, d.put("a")); err == nil {
		t.Error("a was written over A")
	}
}

func TestNoNamesRefuseNothing(t *testing.T) {
	var n *Names
	if err := n.Give("A\x00", nil, func() error { return fs.ErrClosed }); err != fs.ErrClosed {
		t.Error(err)
	}
}
