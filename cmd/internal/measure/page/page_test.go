package page_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
)

func written(t *testing.T, p page.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := page.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// packed are results with these bytes.
func packed(name string, bytes []byte) page.Results {
	p := page.NewPack()
	for piece := range slices.Chunk(bytes, 1000) {
		_, _ = p.Write(piece)
	}
	r := p.Results(name)
	r.Bytes = bytes
	return r
}

var results = []page.Results{
	packed("before.jsonl", []byte(`{"kind":"header","study":"</script><b>"}`+"\n{\"torn\x00")),
	packed(`"><script>.jsonl`, nil),
}

func TestResultsComeBackToTheByte(t *testing.T) {
	found, err := page.Extract([]byte(written(t, page.Page{Title: "it", Results: results})))
	if err != nil || len(found) != len(results) {
		t.Fatalf("%d: %v", len(found), err)
	}
	for i, r := range found {
		if r.Name != results[i].Name || !bytes.Equal(r.Bytes, results[i].Bytes) {
			t.Errorf("%s is %q, and was %s, %q", r.Name, r.Bytes, results[i].Name, results[i].Bytes)
		}
	}
}

func TestChangedPagesAreRefused(t *testing.T) {
	check := func(site string, want error) {
		t.Helper()
		if found, err := page.Extract([]byte(site)); !errors.Is(err, want) || found != nil {
			t.Errorf("%d results, %v, want %v", len(found), err, want)
		}
	}
	whole := written(t, page.Page{Title: "it", Results: results[:1]})
	_, rest, _ := strings.Cut(whole, `data-sha256="`)
	packed := regexp.MustCompile(`>([A-Za-z0-9+/=]+)</script>`).FindStringSubmatch(rest)[1]
	swapped := []byte(packed)
	swapped[len(swapped)/2] ^= 1
	check(strings.Replace(whole, packed, string(swapped), 1), page.ErrChanged)
	check(strings.Replace(whole, packed, packed[:len(packed)/2], 1), page.ErrChanged)
	check(strings.Replace(whole, packed, "", 1), page.ErrChanged)
	check(strings.Replace(whole, `data-bytes="`, `data-bytes="9`, 1), page.ErrChanged)
	check(strings.Replace(whole, `data-bytes="`, `data-bytes="99999999`, 1), page.ErrChanged)
	check(strings.Replace(whole, `data-sha256="`, `data-sha256="0`, 1), page.ErrChanged)
	check(whole[:strings.Index(whole, packed)+len(packed)/2], page.ErrChanged)
	check(written(t, page.Page{Title: "it"}), page.ErrNoResults)
	check("<!doctype html><title>another</title>", page.ErrNoPage)
	check("", page.ErrNoPage)
}

func TestResultsThatAreTooLargeStayOutside(t *testing.T) {
	large := make([]byte, 2<<20)
	for i, r := 0, rand.New(rand.NewPCG(1, 1)); i < len(large); i++ {
		large[i] = byte(r.Uint32())
	}
	site := written(t, page.Page{Title: "it", Results: []page.Results{packed("large.jsonl", large), results[0]}})
	if len(site) > 100_000 || !strings.Contains(site, "large.jsonl, 2097152 bytes: not inside") {
		t.Errorf("%d bytes", len(site))
	}
	if found, err := page.Extract([]byte(site)); err != nil || len(found) != 1 || found[0].Name != results[0].Name {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestScriptAndStyleAreAllowedByTheirHashes compares the hashes of the policy with the page's script and style, as a
// browser does.
func TestScriptAndStyleAreAllowedByTheirHashes(t *testing.T) {
	site := written(t, page.Page{Title: "it"})
	policy := html.UnescapeString(regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(site)[1])
	for element, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
		_, text, _ := strings.Cut(site, "<"+element+">")
		text, _, _ = strings.Cut(text, "</"+element+">")
		sum := sha256.Sum256([]byte(text))
		if want := fmt.Sprintf("%s 'sha256-%s'", directive, base64.StdEncoding.EncodeToString(sum[:])); !strings.Contains(policy, want) {
			t.Errorf("the policy is %s, without %s", policy, want)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || regexp.MustCompile(`https?:|style="| on[a-z]+="`).MatchString(site) {
		t.Errorf("the page may ask for something: %s", policy)
	}
}

func TestTextsAreEscaped(t *testing.T) {
	const bad = "<script>`<b>`\"'"
	table := page.Table{Title: bad, Text: bad, Name: bad, Head: []string{bad}, Rows: []page.Row{{Key: bad, Cells: []string{bad, bad}}}, Notes: []string{bad}}
	section := page.Section{Title: bad, Text: bad, Answer: []string{bad}, Charts: []page.Chart{{Title: bad, Caption: bad}}, Tables: []page.Table{table}, Notes: []string{bad}}
	outer := section
	outer.Sections = []page.Section{section}
	site := written(t, page.Page{Title: bad, Question: bad, Mark: bad, Answer: []string{bad}, Needs: []page.Need{{Text: bad, Verdict: bad, Says: bad}}, Sections: []page.Section{outer}, Results: []page.Results{packed(bad, nil)}})
	if got, want := strings.Count(site, "<script>"), 1; got != want || strings.Contains(site, "<b>") {
		t.Errorf("%d scripts, of one", got)
	}
	if strings.Count(site, "<code>&lt;b&gt;</code>") < 5 {
		t.Error("what stands between backticks is no code")
	}
}

func TestSectionsAreNumberedAndTheirTablesNamed(t *testing.T) {
	table := page.Table{Head: []string{"a"}, Rows: page.Plain([][]string{{"1"}})}
	given := []page.Section{{Title: "one", Tables: []page.Table{table}, Sections: []page.Section{{Title: "inner", Tables: []page.Table{table}}}}, {Title: "two"}}
	site := written(t, page.Page{Title: "it", Sections: given})
	var found []string
	for _, m := range regexp.MustCompile(`<(h[1-4]) id="([^"]*)-h">([^<]*)<|data-name="([^"]*)"|href="(#[^"]*)"`).FindAllStringSubmatch(site, -1) {
		found = append(found, strings.Join(m[1:], ""))
	}
	if want := []string{"h2s1one", "one", "h3s1-1inner", "one, inner", "#s1", "#s2", "h2s2two"}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
	if given[0].ID != "" || given[0].Tables[0].Name != "" {
		t.Error("what was given is changed")
	}
}

// TestWordsStandLeft: a column is left-aligned if its texts begin with letters, and not if one begins with a
// number.
func TestWordsStandLeft(t *testing.T) {
	rows := page.Plain([][]string{{"a", "held", "-", "not split", "-"}, {"b", "-", "-", "25 %", "nothing"}})
	p := page.Page{Title: "it", Sections: []page.Section{{Title: "it", Tables: []page.Table{{Title: "it", Head: []string{"row", "verdict", "none", "CPU", "lost"}, Rows: rows}}}}}
	want := `<th scope="row">a</th><td class="word">held</td><td>-</td><td>not split</td><td class="word">-</td>`
	if got := written(t, p); !strings.Contains(got, want) {
		t.Errorf("the page lacks %s:\n%s", want, got)
	}
	p.Sections[0].Tables[0].Prose = true
	if got := written(t, p); strings.Contains(got, `class="word"`) {
		t.Errorf("prose is marked:\n%s", got)
	}
}
