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
	path  bool // a file has a number for each spelling
	read  bool
	names map[string]string // as they are listed, by how they fold
}

func (d *directory) Stat(_ int, name sys.Name) (sys.Stat, error) {
	if inode, ok := d.files[d.fold(name.String())]; ok {
		if d.path && d.names[d.fold(name.String())] != name.String() {
			inode += 1000
		}
		return sys.Stat{Device: 1, Inode: inode, Links: 1}, nil
	}
	return sys.Stat{}, fs.ErrNotExist
}

func (d *directory) OpenDirIn(int, sys.Name) (int, error) { d.read = false; return 1, nil }
func (d *directory) Close(int) error                      { return nil }

func (d *directory) ReadNames(_ int, _ []byte, to []sys.DirEntry) ([]sys.DirEntry, error) {
	if d.read {
		return to, nil
	}
	d.read = true
	for _, name := range d.names {
		to = append(to, sys.DirEntry{Name: sys.Name(name + "\x00")})
	}
	return to, nil
}

// put gives a new file the name, in place of the earlier file.
func (d *directory) put(name string) func() error {
	return func() error {
		d.last++
		d.files[d.fold(name)] = d.last
		if d.names[d.fold(name)] == "" {
			d.names[d.fold(name)] = name
		}
		return nil
	}
}

func TestANameThatFoldsIntoOneOfTheCallIsRefused(t *testing.T) {
	// a table of letters does not fold a separate accent
	accents := strings.NewReplacer("e\u0301", "é")
	path := false
	check := func(fold func(string) string, before []string, names string, taken string) {
		t.Helper()
		d := &directory{files: map[string]uint64{}, names: map[string]string{}, fold: fold, path: path}
		for _, name := range before {
			_ = d.put(name)()
		}
		var n Names
		refused := ""
		for _, name := range strings.Fields(names) {
			before := d.files[d.fold(name)]
			err := n.Give(d, 0, sys.Name(name+"\x00"), d.put(name))
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
	check(strings.ToLower, []string{"a", "b"}, "A b A B a", "b<B A<a")
	path = true
	check(same, []string{"a"}, "A a", "")
	check(strings.ToLower, nil, "A a B É é A", "A<a É<é")
	path = false
	check(accents.Replace, nil, "é e\u0301 x", "é<e\u0301")
}

// exFAT's inodes change when the kernel drops them.
func TestAFileWhoseNumberChangesIsKnownByItsName(t *testing.T) {
	d := &directory{files: map[string]uint64{}, names: map[string]string{}, fold: strings.ToLower}
	var n Names
	if err := n.Give(d, 0, "A\x00", d.put("A")); err != nil {
		t.Fatal(err)
	}
	_ = d.put("a")() // another number
	if err := n.Give(d, 0, "a\x00", d.put("a")); err == nil {
		t.Error("a was written over A")
	}
}

func TestNoNamesRefuseNothing(t *testing.T) {
	var n *Names
	if err := n.Give(nil, 0, "A\x00", func() error { return fs.ErrClosed }); err != fs.ErrClosed {
		t.Error(err)
	}
}
