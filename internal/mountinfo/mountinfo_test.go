package mountinfo

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	check := func(line string, want Mount) {
		t.Helper()
		got, err := Parse(line)
		if len(got.Optional) == 0 {
			got.Optional = nil
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n%+v, %v; want\n%+v", line, got, err, want)
		}
	}
	tmpfs := func(change func(m *Mount)) Mount {
		m := Mount{ID: 1, Parent: 2, Device: "0:3", Root: "/", Point: "/m", Options: []string{"rw"}, Kind: "tmpfs", Source: "s", Super: []string{"rw"}}
		change(&m)
		return m
	}
	check("36 35 98:0 /sub /mnt/a\\040directory rw,noatime shared:1 - ext4 /dev/x\\134y rw,errors=continue\n", Mount{
		ID: 36, Parent: 35, Device: "98:0", Root: "/sub", Point: "/mnt/a directory", Options: []string{"rw", "noatime"},
		Optional: []string{"shared:1"}, Kind: "ext4", Source: `/dev/x\y`, Super: []string{"rw", "errors=continue"}})
	check("1 2 0:3 / /m rw - tmpfs s rw", tmpfs(func(m *Mount) {}))
	check("1 2 0:3 / /m rw shared:1 master:2 propagate_from:3 unbindable new:4 - tmpfs s rw", tmpfs(func(m *Mount) {
		m.Optional = []string{"shared:1", "master:2", "propagate_from:3", "unbindable", "new:4"}
	}))
	check("1 2 0:3 / /m rw - tmpfs  rw", tmpfs(func(m *Mount) { m.Source = "" }))
	check("1 2 0:3 / /m rw - tmpfs - rw", tmpfs(func(m *Mount) { m.Source = "-" }))
	check("1 2 0:3 - - rw - tmpfs s rw", tmpfs(func(m *Mount) { m.Root, m.Point = "-", "-" }))
	check("1 2 0:3 / /m rw - fuse.a\\040b s rw", tmpfs(func(m *Mount) { m.Kind = "fuse.a b" }))
	check("1 2 0:3 / /m rw - tmpfs s ", tmpfs(func(m *Mount) { m.Super = nil }))
	for _, white := range []string{"\t", "\v", "\f", "\r", "\u0085", "\u00a0", "\u2028", "\u3000"} {
		check("1 2 0:3 / /m"+white+"- rw - tmpfs "+white+" rw,a="+white, tmpfs(func(m *Mount) {
			m.Point, m.Source, m.Super = "/m"+white+"-", white, []string{"rw", "a=" + white}
		}))
	}
	check(`1 2 0:3 / /m\040\011\012\134\043\101 rw - tmpfs \040 rw`, tmpfs(func(m *Mount) { m.Point, m.Source = "/m \t\n\\#A", " " }))
	check(`1 2 0:3 / /m rw - overlay s rw,upperdir=/a\054b\040c,,x`, tmpfs(func(m *Mount) {
		m.Kind, m.Super = "overlay", []string{"rw", "upperdir=/a,b c", "", "x"}
	}))
	check(`1 2 0:3 / /m rw - 9p C:\134 rw,path=C:\Program Files - x,cache=5`, tmpfs(func(m *Mount) {
		m.Kind, m.Source, m.Super = "9p", `C:\`, []string{"rw", `path=C:\Program Files - x`, "cache=5"}
	}))
}

func TestParseRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"nothing":              "",
		"a word":               "x",
		"no dash":              "36 35 98:0 / / rw ext4 /dev/x rw a b c",
		"a dash too early":     "36 35 98:0 / / - ext4 /dev/x rw a b c",
		"no mount options":     "36 35 98:0 / / - ext4 /dev/x rw",
		"no super options":     "36 35 98:0 / / rw - ext4 /dev/x",
		"too little behind":    "36 35 98:0 / / rw a b c d - ext4 /dev/x",
		"no number":            "x 35 98:0 / / rw - ext4 /dev/x rw",
		"no number of parent":  "36 x 98:0 / / rw - ext4 /dev/x rw",
		"two spaces":           "36 35 98:0 /  / rw - ext4 /dev/x rw",
		"two spaces in others": "36 35 98:0 / / rw shared:1  - ext4 /dev/x rw",
		"no type":              "36 35 98:0 / / rw -  /dev/x rw",
		"two lines":            "36 35 98:0 / / rw - ext4 /dev/x rw\n\n",
		"a tab for a space":    "36 35 98:0 / / rw\t- ext4 /dev/x rw",
	} {
		if m, err := Parse(line); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", strings.TrimSuffix(line, "\n"))) {
			t.Errorf("%s: %q is read as %+v, %v", name, line, m, err)
		}
	}
}

func TestParseAllNamesTheFirstLineItCannotRead(t *testing.T) {
	const good = "1 2 0:3 / /m rw - tmpfs s rw\n"
	if all, err := ParseAll(good + good + strings.TrimSuffix(good, "\n")); len(all) != 3 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	all, err := ParseAll(good + "bad line\n" + good + "worse\n")
	if len(all) != 2 || err == nil || !strings.Contains(err.Error(), `line 2: "bad line"`) {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := ParseAll(""); len(all) != 0 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestUnescape(t *testing.T) {
	check := func(in, want string) {
		t.Helper()
		if got := Unescape(in); got != want {
			t.Errorf("Unescape(%q) = %q, want %q", in, got, want)
		}
	}
	check("", "")
	check(`a\040b`, "a b")
	check(`a\134b`, `a\b`)
	check(`a\1340`, `a\0`)
	check(`\134040`, `\040`)
	check(`a\0`, `a\0`)
	check(`a\04`, `a\04`)
	check(`a\999`, `a\999`)
	check(`a\777`, `a\777`)
	check(`a\+40`, `a\+40`)
	check(`a\`, `a\`)
	check(`\\040`, `\ `)
	check(`\011\302\240`, "\t\u00a0")
}

func TestEscapeOption(t *testing.T) {
	if got, want := EscapeOption("upperdir=/a,b \t\n\\é\u00a0#"), `upperdir=/a\054b\040\011\012\134é`+"\u00a0#"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// printed is the line that the kernel writes for a mount.
func printed(m Mount) string {
	const name = " \t\n\\"
	var super []string
	for _, option := range m.Super {
		super = append(super, EscapeOption(option))
	}
	return strings.Join(slices.Concat(
		[]string{fmt.Sprint(m.ID), fmt.Sprint(m.Parent), m.Device, escape(m.Root, name), escape(m.Point, name), strings.Join(m.Options, ",")},
		m.Optional,
		[]string{"-", escape(m.Kind, name+"#"), escape(m.Source, name+"#"), strings.Join(super, ",")},
	), " ") + "\n"
}

func FuzzParse(f *testing.F) {
	f.Add("36 35 98:0 / /mnt/a\\040directory rw,noatime shared:1 - ext4 /dev/x\\134y rw,errors=continue\n")
	f.Add("1 1 0:1 /x /y rw - tmpfs none rw")
	f.Add("1 1 y w -\fw - y\ft") // white space that separates nothing
	f.Add("1 1 0:1 / /a\u00a0b\u0085c rw -\v- - \f\u2028  rw")
	f.Add(`1 1 0:1 - - rw a b c - overlay  rw,upperdir=/a\054b,\134,,x y`)
	f.Fuzz(func(t *testing.T, line string) {
		m, err := Parse(line)
		if err != nil {
			return
		}
		again, err := Parse(printed(m))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%q is read as\n%+v; printed as %q, as\n%+v, %v", line, m, printed(m), again, err)
		}
	})
}

// FuzzParseAll wants that each line is read, or the first bad one named.
func FuzzParseAll(f *testing.F) {
	f.Add("1 1 0:1 /x /y rw - tmpfs none rw\n\nx\n1 1 0:1 /x /y rw - tmpfs none rw")
	f.Add("\r\n\u2028\n1 2 3:4 \\ / \\04 - x y z\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseAll(text)
		lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
		if text == "" {
			lines = 0
		}
		if (err == nil) != (len(all) == lines) {
			t.Errorf("%d lines, %d mounts, %v", lines, len(all), err)
		}
		for _, m := range all {
			if m.Device == "" || m.Root == "" || m.Point == "" || m.Kind == "" || len(m.Options) == 0 {
				t.Errorf("mount with a gap: %+v", m)
			}
		}
	})
}
