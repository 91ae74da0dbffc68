package serve

import (
	"fmt"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
)

// begin adds the head of one of the server's own pages, and opens its body.
func begin(m *page.Markup, title string) {
	m.Add(page.Raw(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/style.css">
<title>holdfast: `), title, page.Raw("</title>\n</head>\n<body>\n<main>\n"))
}

const (
	toList = page.Raw(`<p><a href="/">results</a></p>` + "\n")
	end    = page.Raw("</main>\n</body>\n</html>\n")
)

// A listPage is the content of the list page.
type listPage struct {
	wanted                      filter
	machines, policies, studies []string // the values to choose from
	entries                     []listing
	found, all                  int
}

func (p listPage) markup() string {
	var m page.Markup
	begin(&m, "results")
	m.Add(page.Raw(`<h1>Results</h1>
<form class="search" action="/" role="search">
<label>words <input type="search" name="words" value="`), p.wanted.Words, page.Raw(`"></label>`+"\n"))
	choice(&m, "machine", p.machines, p.wanted.Machine)
	choice(&m, "policy", p.policies, p.wanted.Policy)
	choice(&m, "study", p.studies, p.wanted.Study)
	m.Add(page.Raw("<button>search</button>\n</form>\n"))
	if p.all == 0 {
		m.Add(page.Raw("<p>There are no results here yet: <code>holdfast bench -o results.jsonl</code> makes some.</p>\n"), end)
		return m.String()
	}
	m.Add(page.Raw(`<form action="/compare">` + "\n"))
	for _, w := range [][2]string{{"words", p.wanted.Words}, {"machine", p.wanted.Machine}, {"policy", p.wanted.Policy}, {"study", p.wanted.Study}} {
		if w[1] != "" { // so that "all" means all found by the search
			m.Add(page.Raw(`<input type="hidden" name="`), w[0], page.Raw(`" value="`), w[1], page.Raw(`">`+"\n"))
		}
	}
	m.Add(page.Raw("<p>"), fmt.Sprintf("%d of %d files", p.found, p.all))
	if p.found > len(p.entries) {
		m.Add(fmt.Sprintf("; the newest %d are shown", len(p.entries)))
	}
	m.Add(page.Raw(`. <button>compare the ticked runs</button> <button formaction="/fleet">compare the hosts of the ticked runs, or of all</button></p>
<div class="scroll" role="region" aria-label="results" tabindex="0">
<table>
<thead><tr><th scope="col">compare</th><th scope="col">file</th><th scope="col">when</th><th scope="col">study</th><th scope="col">policies</th><th scope="col">machine</th><th scope="col">state</th></tr></thead>
<tbody>
`))
	for _, e := range p.entries {
		e.row(&m)
	}
	m.Add(page.Raw("</tbody>\n</table>\n</div>\n</form>\n"), end)
	return m.String()
}

// choice adds a field with the values of a search.
func choice(m *page.Markup, name string, values []string, chosen string) {
	m.Add(page.Raw("<label>"), name, page.Raw(` <select name="`), name, page.Raw(`"><option value="">any</option>`))
	for _, v := range values {
		selected := page.Raw("")
		if v == chosen {
			selected = " selected"
		}
		m.Add(page.Raw("<option"), selected, page.Raw(">"), v, page.Raw("</option>"))
	}
	m.Add(page.Raw("</select></label>\n"))
}

// row adds a file to the list.
func (e listing) row(m *page.Markup) {
	m.Add(page.Raw("<tr>\n"))
	if e.Shown {
		m.Add(page.Raw(`<td><input type="checkbox" name="file" value="`), e.Name, page.Raw(`" aria-label="compare `), e.Name, page.Raw(`"></td>
<th scope="row"><a href="`), link("/report", e.Name), page.Raw(`">`), e.Name, page.Raw("</a></th>\n"))
	} else {
		m.Add(page.Raw("<td></td>\n"+`<th scope="row">`), e.Name, page.Raw("</th>\n"))
	}
	m.Add(page.Raw(`<td class="when">`), e.When.UTC().Format("2006-01-02 15:04"), page.Raw(" UTC</td>\n<td>"), e.Study, page.Raw("</td>\n<td>"))
	if len(e.Policies) > 0 {
		m.Add(page.Raw("<details><summary>"), len(e.Policies), page.Raw("</summary><ul>"))
		for _, p := range e.Policies {
			m.Add(page.Raw("<li>"), p, page.Raw("</li>"))
		}
		m.Add(page.Raw("</ul></details>"))
	}
	m.Add(page.Raw(`</td>
<td class="machine">`))
	if e.Host != "" {
		m.Add(page.Raw("<b>"), e.Host, page.Raw("</b>: "))
	}
	m.Add(e.Machine, page.Raw("</td>\n"+`<td class="state">`))
	if e.Growing {
		m.Add(page.Raw(`<a href="`), link("/live", e.Name), page.Raw(`">watch it</a>: `))
	}
	m.Add(e.State, page.Raw("</td>\n</tr>\n"))
}

// livePage returns the page of a run in progress.
func livePage(name string, v view) string {
	var m page.Markup
	begin(&m, name)
	m.Add(page.Raw(`<p><a href="/">results</a> · <a href="`), link("/report", name), page.Raw(`">the page of this run</a></p>
<h1>`), name, page.Raw(`</h1>
<p><output id="status">`), v.status, page.Raw(`</output></p>
<noscript><p>Scripts are off: reload this page to see the progress.</p></noscript>
<div id="live" data-events="`), link("/events", name), page.Raw(`"><pre id="table" tabindex="0">`), v.table, page.Raw(`</pre></div>
</main>
<script src="/live.js"></script>
</body>
</html>
`))
	return m.String()
}

// comparePage returns the page of compared pairs of runs.
func comparePage(pairs []pair) string {
	var m page.Markup
	begin(&m, "comparison")
	m.Add(toList)
	for _, p := range pairs {
		m.Add(page.Raw("<h1>"), p.B, " beside ", p.A, page.Raw("</h1>\n"+`<pre tabindex="0">`), p.Text, page.Raw("</pre>\n"))
	}
	m.Add(end)
	return m.String()
}

// refusalPage returns a page with the reason, in one sentence, that something is not shown.
func refusalPage(sentence string) string {
	var m page.Markup
	begin(&m, "not shown")
	m.Add(toList, page.Raw("<h1>Not shown</h1>\n<p>"), sentence, page.Raw(".</p>\n"), end)
	return m.String()
}
