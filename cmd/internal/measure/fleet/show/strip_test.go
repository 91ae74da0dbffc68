package show

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestOutliersAreNamedInThePicture: each host has a point in each row, and the outliers have their names there.
func TestOutliersAreNamedInThePicture(t *testing.T) {
	f := made(1, 12, 2, 0)
	charts := strips(f)
	if len(charts) != 1 {
		t.Fatalf("%d pictures", len(charts))
	}
	scores := 0
	for _, h := range f.Hosts {
		scores += len(h.Scores)
	}
	if points := strings.Count(charts[0].Picture, "<title>"); points < scores {
		t.Errorf("%d titles of %d scores", points, scores)
	}
	for _, h := range f.Hosts {
		odd := false
		for _, s := range h.Scores {
			odd = odd || s.Word != ""
		}
		label := fmt.Sprintf(`<text class="label[^"]*"[^>]*>%s<`, regexp.QuoteMeta(h.Name))
		if named := regexp.MustCompile(label).MatchString(charts[0].Picture); named != odd {
			t.Errorf("%s is an outlier: %t, and named: %t", h.Name, odd, named)
		}
	}
}
