package volume

import (
	"slices"
	"strings"
	"testing"
)

func TestParseReadsEachNameOnce(t *testing.T) {
	check := func(text string, want ...string) {
		t.Helper()
		kinds, err := Parse(text)
		if err != nil || !slices.Equal(names(kinds), want) {
			t.Errorf("Parse(%q) = %v, %v, want %v", text, names(kinds), err, want)
		}
	}
	check("ext4", "ext4")
	check("xfs, ext4-writeback ,xfs,btrfs", "xfs", "ext4-writeback", "btrfs")
	check(strings.Join(names(Kinds()), ","), names(Kinds())...)
}

func TestParseNamesWhatItDoesNotKnow(t *testing.T) {
	for _, text := range []string{"", "ext4,", "EXT4", "ntfs", "xfs,ext4-dax"} {
		kinds, err := Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) = %v", text, names(kinds))
			continue
		}
		bad := text[strings.LastIndex(text, ",")+1:]
		if !strings.Contains(err.Error(), `"`+bad+`"`) || !strings.Contains(err.Error(), "; use ext2, ") {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
}

func TestSizeForIsNeverLessThanWhatIsToBeHeld(t *testing.T) {
	for _, k := range Kinds() {
		if got := k.SizeFor(0, 0); got < k.Least {
			t.Errorf("%s.SizeFor(0, 0) = %d, the least is %d", k.Name, got, k.Least)
		}
		if got := k.SizeFor(1<<30+1, 0); got <= 1<<30 || got%mebibyte != 0 {
			t.Errorf("%s.SizeFor(1 GiB and a byte, 0) = %d", k.Name, got)
		}
		if got := k.SizeFor(1<<30, 1000); got < 1<<30+1000*4096 {
			t.Errorf("%s.SizeFor(1 GiB, 1000 files) = %d", k.Name, got)
		}
	}
}

func TestMissingErrorHints(t *testing.T) {
	check := func(e MissingError, want string) {
		t.Helper()
		if got := e.Hint(); !strings.Contains(got, want) {
			t.Errorf("the hint of %+v is %q, want %q in it", e, got, want)
		}
	}
	check(MissingError{Kernel: true, Root: true, Package: "jfsutils"}, "--kernel uml")
	check(MissingError{Root: true, Package: "xfsprogs"}, "--dir")
	check(MissingError{Package: "xfsprogs"}, "apt-get install xfsprogs")
	check(MissingError{}, "--dir")
}
