package temporary

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/sys"
)

func TestKnownNamesAreKnownAndNoOthers(t *testing.T) {
	for range 1000 {
		name := KnownName()
		if !IsKnownName(name) || len(name) != 31 {
			t.Errorf("%q of %d bytes", name, len(name))
		}
		for _, other := range []sys.Name{Name(), name[1:], name[:len(name)-2] + "\x00", "x" + name[1:], name + "0"} {
			if IsKnownName(other) {
				t.Errorf("%q is known", other)
			}
		}
	}
}
