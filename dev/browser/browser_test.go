package browser

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chrome is where tabs are opened; nil: there is none, and why says so. command is the program that makes pages.
var (
	chrome       context.Context
	why, command string
)

func TestMain(m *testing.M) {
	code, err := start(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// start builds the command and starts the browser, for all tests together.
func start(m *testing.M) (code int, err error) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		why = "there is no chromium (Debian: apt-get install chromium)"
		return m.Run(), nil
	}
	dir, err := os.MkdirTemp("", "holdfast-browser-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	command = filepath.Join(dir, "holdfast")
	build := exec.Command("go", "build", "-o", command, "./cmd/holdfast")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(filepath.Join(dir, "profile")))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, stop := chromedp.NewContext(allocated)
	defer stop()
	if err := chromedp.Do(ctx); err != nil {
		return 0, fmt.Errorf("%s does not start: %w", path, err)
	}
	chrome = ctx
	return m.Run(), nil
}

// A tab has one page open. It counts what a page must not do.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu   sync.Mutex
	said []string // messages of the console, dialogs, and requests
}

// report makes a page with the command.
func report(t *testing.T, args ...string) string {
	t.Helper()
	if chrome == nil {
		t.Skip(why)
	}
	site := filepath.Join(t.TempDir(), "report.html")
	out, err := exec.Command(command, append([]string{"report", "-o", site}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("report %q: %v: %s", args, err, out)
	}
	return site
}

// usualPage makes a page of the usual run with a need, once for all tests.
func usualPage(t *testing.T) string {
	t.Helper()
	return pageOnce(t, "usual", 0, 1, 4, 16, 64, 256, 1024)
}

// smallPage has all that the usual page has, fewer times: a browser takes a while for each element.
func smallPage(t *testing.T) string {
	t.Helper()
	return pageOnce(t, "small", 0, 64)
}

func pageOnce(t *testing.T, name string, buffers ...int) string {
	t.Helper()
	site := command + "-" + name + ".html"
	if _, err := os.Stat(site); err == nil && chrome != nil {
		return site
	}
	// Fewer rounds prove nothing among that number of cells.
	if err := os.Rename(report(t, usual(t, buffers...).write(14), "--need", "loss<=1s,rate>=50k/s"), site); err != nil {
		t.Fatal(err)
	}
	return site
}

// open opens a page in a tab of its own: a file, or an address of http. It fails the test if the page then says anything,
// or asks for anything but its own server. The actions come first.
func open(t *testing.T, site string, before ...action) *tab {
	t.Helper()
	if chrome == nil {
		t.Skip(why)
	}
	ctx, stop := chromedp.NewContext(chrome)
	ctx, late := context.WithTimeout(ctx, 60*time.Second)
	b := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		late()
		stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, what := range b.said {
			t.Error("the page was not quiet: " + what)
		}
	})
	address, own := site, ""
	if server, err := url.Parse(site); err == nil && server.Scheme == "http" {
		own = "http://" + server.Host + "/"
	} else {
		address = (&url.URL{Scheme: "file", Path: site}).String()
	}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			b.heard("console: %v", e.Args)
		case *runtime.EventExceptionThrown:
			b.heard("exception: %v", e.ExceptionDetails)
		case *log.EventEntryAdded:
			b.heard("log: %s %s", e.Entry.Text, e.Entry.URL)
		case *page.EventJavascriptDialogOpening:
			b.heard("dialog: %s", e.Message)
			go func() { _, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) }()
		case *network.EventRequestWillBeSent:
			if e.Request.URL != address && (own == "" || !strings.HasPrefix(e.Request.URL, own)) && e.Request.URL != "data:," && !strings.HasPrefix(e.Request.URL, "data:image/svg") && !strings.HasPrefix(e.Request.URL, "blob:") {
				b.heard("request: %s", e.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.do(append(append([]action{call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{})}, before...), chromedp.Navigate(address))...)
	return b
}

func (b *tab) heard(format string, values ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, fmt.Sprintf(format, values...))
}

func (b *tab) do(actions ...action) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// ask evaluates an expression in the page.
func ask[T any](b *tab, expression string) (value T) {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// pointAt moves the mouse onto a selector's n-th element.
func (b *tab) pointAt(selector string, n int) (x, y float64) {
	b.t.Helper()
	// An element is laid out only when it comes into view, and then moves the elements below.
	at, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(`(async () => {
		const e = document.querySelectorAll(%q)[%d];
		for (let last = NaN;;) {
			e.scrollIntoView({block: "center"});
			await new Promise(requestAnimationFrame);
			const r = e.getBoundingClientRect();
			if (r.y === last) return [r.x + r.width / 2, r.y + r.height / 2];
			last = r.y;
		}
	})()`, selector, n), chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", selector, err)
	}
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, at[0], at[1]))
	return at[0], at[1]
}

func (b *tab) click(selector string, n int) {
	b.t.Helper()
	b.do(chromedp.MouseClickXY(b.pointAt(selector, n)))
}

// An action is one without a result.
type action = chromedp.Action[chromedp.Void]

// call is the action of a command of the protocol.
func call[P, R any](command cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func colours(scheme string) action {
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// unfold opens all sections that are closed at first.
func (b *tab) unfold() {
	ask[chromedp.Void](b, `document.querySelectorAll("details").forEach((e) => { e.open = true; }), 0`)
}

//go:embed checks.js
var checks string

const mark = "figure svg [data-key]"

func TestHoverTellsTheCell(t *testing.T) {
	b := open(t, smallPage(t))
	b.pointAt(mark, 0)
	tip := ask[string](b, `document.getElementById("tip").innerText`)
	policy := ask[string](b, fmt.Sprintf(`document.querySelector(%q).dataset.label`, mark))
	policy, _, _ = strings.Cut(policy, " ")
	for _, want := range []string{policy, "128B records, 1 writer", "to write, a record: ", "cost: "} {
		if !strings.Contains(tip, want) {
			t.Errorf("it tells nothing of %s:\n%s", want, tip)
		}
	}
	if hot := ask[int](b, `document.querySelectorAll("tr.hot").length`); hot != 2 {
		t.Errorf("%d rows are shown with it", hot)
	}
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, 1, 1))
	if !ask[bool](b, `document.getElementById("tip").hidden && document.querySelectorAll("tr.hot").length === 0`) {
		t.Error("it stays when the mouse is elsewhere")
	}
}

func TestClickPinsForComparison(t *testing.T) {
	b := open(t, smallPage(t))
	b.unfold()
	columns := func() []string {
		return ask[[]string](b, `Array.from(document.querySelectorAll("#pins thead th"), (e) => e.textContent)`)
	}
	b.click(mark, 0)
	b.click(mark, 3)
	b.click("table tbody tr[data-key] th", 5)
	head := columns()
	if len(head) != 4 || head[1] == head[2] || !strings.Contains(head[3], "buffer=") {
		t.Fatalf("the columns are %q", head)
	}
	if figures := ask[int](b, `document.querySelectorAll("#pins tbody tr").length`); figures < 15 {
		t.Errorf("%d figures are compared", figures)
	}
	for _, row := range ask[[][]string](b, `Array.from(document.querySelectorAll("#pins tbody tr"), (r) => Array.from(r.cells, (c) => c.textContent))`) {
		if len(row) != 4 {
			t.Errorf("%q", row)
		}
	}
	if pinned := ask[int](b, `document.querySelectorAll("svg .pinned").length`); pinned < 2 {
		t.Errorf("%d dots are marked", pinned)
	}
	b.click("#pins thead button", 0)
	if got := columns(); len(got) != 3 || got[1] != head[2] {
		t.Errorf("after the first was removed: %q", got)
	}
	b.click("#pins .head button", 0)
	if !ask[bool](b, `document.getElementById("pins").hidden && document.querySelectorAll(".pinned").length === 0`) {
		t.Error("it is not closed")
	}
}

func TestTablesAreSorted(t *testing.T) {
	b := open(t, smallPage(t))
	const table = `document.querySelector("table tbody tr[data-key]").closest("table")`
	at := ask[int](b, `Array.from(`+table+`.tHead.rows[0].cells).findIndex((c) => c.textContent === "to write, a record")`)
	column := func() []string {
		return ask[[]string](b, fmt.Sprintf(`Array.from(%s.tBodies[0].rows, (r) => r.cells[%d].textContent)`, table, at))
	}
	seconds := func(text string) float64 {
		var number float64
		var unit string
		if _, err := fmt.Sscanf(strings.NewReplacer("ns", " ns", "µs", " us", "ms", " ms").Replace(text), "%g %s", &number, &unit); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return number * map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[unit]
	}
	for i, way := range []string{"ascending", "descending"} {
		ask[chromedp.Void](b, fmt.Sprintf(`%s.tHead.rows[0].cells[%d].querySelector("button").click()`, table, at))
		if got := ask[string](b, fmt.Sprintf(`%s.tHead.rows[0].cells[%d].getAttribute("aria-sort")`, table, at)); got != way {
			t.Errorf("it says %q", got)
		}
		values := column()
		for n := 1; n < len(values); n++ {
			if a, b := seconds(values[n-1]), seconds(values[n]); i == 0 && a > b || i == 1 && a < b {
				t.Errorf("%s: %s stands before %s", way, values[n-1], values[n])
			}
		}
	}
	if sorted := ask[int](b, table+`.querySelectorAll("[aria-sort]").length`); sorted != 1 {
		t.Errorf("%d columns are said to be sorted", sorted)
	}
}

// TestRowsAreChosen shows verdicts of a proof, and chooses some by their words.
func TestRowsAreChosen(t *testing.T) {
	proof := filepath.Join(t.TempDir(), "proof.jsonl")
	const lines = `{"Level":"memory","Workload":"writer","Policy":"buffer=4KiB,sync=1s","Verdict":"held","Tally":{"States":7}}
{"Level":"memory","Workload":"tree<b>","Policy":"buffer=0,sync=each","Verdict":"broken","Failure":{"Words":"a record is <i>gone</i>","Log":{}}}
`
	if err := os.WriteFile(proof, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	b := open(t, report(t, few(t).write(3), "--proof", proof))
	shown := func() string {
		return ask[string](b, `Array.from(document.querySelectorAll("table[data-filter] tbody tr:not([hidden])"), (r) => r.cells[0].textContent).join()`)
	}
	if got := shown(); got != "writer,tree<b>" {
		t.Errorf("at first there are %q", got)
	}
	choose := `document.querySelector(".tools %s").value = %q, document.querySelector(".tools %[1]s").dispatchEvent(new Event(%[3]q)), 0`
	ask[chromedp.Void](b, fmt.Sprintf(choose, "select", "broken", "change"))
	if got := shown(); got != "tree<b>" {
		t.Errorf("broken are %q", got)
	}
	ask[chromedp.Void](b, fmt.Sprintf(choose, "select", "", "change"))
	ask[chromedp.Void](b, fmt.Sprintf(choose, "input", "SYNC=1S", "input"))
	if got := shown(); got != "writer" {
		t.Errorf("a search finds %q", got)
	}
	if story := ask[string](b, `document.querySelector("table[data-filter]").closest("section").textContent`); !strings.Contains(story, "broke its promise: a record is <i>gone</i>. To repeat it: holdfast prove --replay proof.jsonl:2") {
		t.Errorf("the story is not told: %s", story)
	}
}

// TestKeyboardReachesAll goes through the page with the tab key, and through a picture with the arrows.
func TestKeyboardReachesAll(t *testing.T) {
	b := open(t, report(t, few(t).write(3)))
	b.unfold()
	all := ask[int](b, `(window.all = Array.from(document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']"))).length`)
	ask[chromedp.Void](b, `window.reached = new Set(), document.addEventListener("focusin", (e) => reached.add(e.target)), 0`)
	for range all + 5 {
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	if missed := ask[[]string](b, `all.filter((e) => e.tabIndex === 0 && !reached.has(e)).map((e) => e.outerHTML.slice(0, 100))`); len(missed) > 0 {
		t.Errorf("of %d the tab key does not reach %d: %q", all, len(missed), missed)
	}
	ask[chromedp.Void](b, `document.querySelector("svg [tabindex='0']").focus(), 0`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	if ask[bool](b, `document.activeElement === document.querySelector("svg [data-key]")`) {
		t.Error("the arrow does not go to the next dot")
	}
	if tip := ask[string](b, `document.getElementById("tip").innerText`); !strings.Contains(tip, "buffer=") {
		t.Errorf("the focused dot tells %q", tip)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	if columns := ask[int](b, `document.querySelectorAll("#pins thead th").length`); columns != 2 {
		t.Errorf("Enter pins no cell: %d columns", columns)
	}
}

func TestPageIsReadWithoutSight(t *testing.T) {
	other := few(t)
	other.run.Header.Machine[0].Value = "another"
	sites := map[string]string{
		"usual":   smallPage(t),
		"compare": report(t, few(t).write(10), other.write(10)),
	}
	for name, site := range sites {
		for _, scheme := range []string{"light", "dark"} {
			b := open(t, site, colours(scheme))
			ask[chromedp.Void](b, `document.querySelectorAll("section").forEach((e) => e.style.contentVisibility = "visible"), 0`)
			b.click(mark, 0)
			b.click(mark, 1)
			b.pointAt(mark, 2)
			for _, wrong := range ask[[]string](b, checks) {
				t.Errorf("%s, %s: %s", name, scheme, wrong)
			}
		}
	}
}

func TestDarkAndLightDiffer(t *testing.T) {
	site := report(t, few(t).write(3))
	paper := func(scheme string) string {
		return ask[string](open(t, site, colours(scheme)), `getComputedStyle(document.body).backgroundColor`)
	}
	if light, dark := paper("light"), paper("dark"); light != "rgb(255, 255, 255)" || dark == light {
		t.Errorf("the paper is %s, in the dark %s", light, dark)
	}
}

func TestTelephoneNeedsNoScrollingAside(t *testing.T) {
	b := open(t, smallPage(t), chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	b.click(mark, 0)
	b.click(mark, 2)
	if wide := ask[int](b, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("the page is %d px wide", wide)
	}
	if cut := ask[int](b, `Array.from(document.querySelectorAll("table")).filter((e) => e.offsetWidth > e.parentNode.clientWidth + 1 && getComputedStyle(e.parentNode).overflowX !== "auto").length`); cut > 0 {
		t.Errorf("%d tables are cut, and can't be scrolled", cut)
	}
	if out := ask[[]string](b, `Array.from(document.querySelectorAll("main *")).filter((e) => !e.closest(".wide") && !e.closest("svg") && e.getBoundingClientRect().right > 391).map((e) => e.outerHTML.slice(0, 100))`); len(out) > 0 {
		t.Errorf("beyond the edge: %q", out)
	}
}

// TestPageIsReadWithoutScript: the script adds to the page, and nothing depends on it.
func TestPageIsReadWithoutScript(t *testing.T) {
	site := smallPage(t)
	with, without := open(t, site), open(t, site, call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	const told = `Array.from(document.querySelectorAll("h1, h2, h3, h4, p, li, td, tbody th, figcaption, svg text"), (e) => e.textContent).join("\n")`
	if a, b := ask[string](with, told), ask[string](without, told); a != b || len(b) < 10_000 {
		t.Errorf("with the script there are %d characters to read, without %d", len(a), len(b))
	}
	if buttons := ask[int](without, `document.querySelectorAll("button").length`); buttons > 0 {
		t.Errorf("there are %d buttons that do nothing", buttons)
	}
}

func TestHostileResultsAreInert(t *testing.T) {
	for _, text := range []string{
		`<script>alert(1)</script><img src=x onerror=alert(2)>`, `"><svg onload=alert(3)>`, "`${alert(4)}`'-alert(5)-'", "</script><script>alert(6)//", "</style><script>alert(7)</script>",
		"\u001b]0;x\u0007\u202e\u0085{{.}}", "a[href=x]{}\\\"']}",
	} {
		b := open(t, report(t, hostile(t, text), "--need", "loss<=1s"))
		b.pointAt(mark, 0)
		b.click(mark, 0)
		b.click("table tbody tr[data-key] th", 3)
		if n := ask[int](b, `document.querySelectorAll("script:not([type]), img, iframe, object, embed, [onload], [onerror]").length`); n != 1 {
			t.Errorf("%q: the page has %d scripts and the like", text, n)
		}
		if columns := ask[int](b, `document.querySelectorAll("#pins thead th").length`); columns < 2 {
			t.Errorf("%q: nothing is pinned", text)
		}
	}
}

var loadsOfPage = flag.Int("loads", 15, "how many loads of 100 cells the page of TestThousandsOfCellsOpenAtOnce has")

// TestThousandsOfCellsOpenAtOnce bounds the browser's work for a run of 1,500 cells, or as -loads says, which a busy machine does
// not change. It logs how long that takes.
func TestThousandsOfCellsOpenAtOnce(t *testing.T) {
	empty, cells := *loadsOfPage, 100**loadsOfPage
	site := report(t, large(t, empty, 3))
	b := open(t, site, chromedp.EmulateViewport(1000, 900))
	ms := ask[float64](b, `(() => { const t = performance.getEntriesByType("navigation")[0]; return t.loadEventEnd - t.startTime; })()`)
	if got := ask[int](b, `new Set(Array.from(document.querySelectorAll("tr[data-key]"), (r) => r.dataset.key)).size`); got != cells-empty {
		t.Fatalf("%d cells", got)
	}
	nodes := ask[int](b, `document.querySelectorAll("*").length`)
	if most := 15_000 + 56*cells; nodes > most {
		t.Errorf("the page has %d elements, of at most %d", nodes, most)
	}
	// Elements out of sight are not laid out: layout is most of the time.
	const laidOut = `Array.from(document.querySelectorAll("tr[data-key] > th")).filter((e) => e.checkVisibility({ contentVisibilityAuto: true })).length`
	if rows := ask[int](b, laidOut); rows > 1000 {
		t.Errorf("%d rows are laid out before anyone scrolls there", rows)
	}
	began := time.Now()
	b.pointAt(mark, 50)
	if tip := ask[string](b, `document.getElementById("tip").innerText`); !strings.Contains(tip, "to write, a record: ") {
		t.Errorf("it tells %q", tip)
	}
	told := time.Since(began)
	began = time.Now()
	b.click(mark, 10)
	pinned := time.Since(began)
	ask[chromedp.Void](b, `document.querySelector("table:has(tr[data-key])").closest("details").open = true, 0`)
	began = time.Now()
	b.click("table:has(tr[data-key]) .sorts", 2)
	sorted := time.Since(began)
	if got := ask[int](b, `document.querySelectorAll("[aria-sort]").length`); got != 1 {
		t.Errorf("%d columns are sorted", got)
	}
	if rows := ask[int](b, laidOut); rows > 1000 {
		t.Errorf("%d rows are laid out for one table", rows)
	}
	t.Logf("%d elements open after %.0f ms, a cell told after %v, pinned after %v, a table sorted after %v", nodes, ms, told, pinned, sorted)
}

// TestUsualPageIsSmall bounds what is sent around.
func TestUsualPageIsSmall(t *testing.T) {
	text, err := os.ReadFile(usualPage(t))
	if err != nil {
		t.Fatal(err)
	}
	const most = 1_500_000
	if len(text) > most || bytes.Count(text, []byte("data-sha256=")) != 1 {
		t.Errorf("%d bytes, of at most %d, with %d results inside", len(text), most, bytes.Count(text, []byte("data-sha256=")))
	}
}
