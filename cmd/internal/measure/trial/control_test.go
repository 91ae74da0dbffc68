package trial

import (
	"os"
	"testing"
)

func TestControl(t *testing.T) {
	g, err := OpenWorkDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	c, err := g.Control()
	if err != nil {
		t.Fatal(err)
	}
	if c.Write <= 0 || c.Fdatasync <= 0 {
		t.Errorf("%+v", c)
	}
	if left, err := os.ReadDir(g.Inside()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
