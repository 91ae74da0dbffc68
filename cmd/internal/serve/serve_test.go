package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/fleet/show"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/machine"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/report"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/internal/isolate"
)

// A site is a server on a listener of its own.
type site struct {
	t       *testing.T
	address string
	end     context.CancelFunc
	ended   chan error
}

// newSite serves a directory until the test ends, and checks that no goroutine is left then.
func newSite(t *testing.T, dir string) *site {
	t.Helper()
	before := runtime.NumGoroutine()
	root, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	s := &site{t, listener.Addr().String(), end, make(chan error, 1)}
	go func() {
		s.ended <- serveAll(ctx, listener, newServer(nil, root, "127.0.0.1"), func(v any) { t.Errorf("a page failed: %v", v) })
	}()
	t.Cleanup(func() {
		end()
		if err := <-s.ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		if err := root.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		for start := time.Now(); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Since(start) > time.Minute {
				stacks := make([]byte, 1<<20)
				t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
			}
		}
	})
	return s
}

// An answer is one answer to a browser.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request, which change may change.
func (s *site) ask(path string, change func(*http.Request)) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.address+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{got.StatusCode, got.Header, string(body)}
}

// wants checks an answer's status and text.
func (s *site) wants(path string, status int, texts ...string) answer {
	s.t.Helper()
	a := s.ask(path, nil)
	if a.status != status {
		s.t.Errorf("%s: status %d, want %d:\n%.500s", path, a.status, status, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			s.t.Errorf("%s lacks %q:\n%.4000s", path, text, a.body)
		}
	}
	return a
}

// sample is a run that an earlier version measured.
func sample(t *testing.T) result.Run {
	t.Helper()
	f, err := os.Open("../measure/result/testdata/version1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := result.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// lines are a run as its file has it.
func lines(t *testing.T, run result.Run) []string {
	t.Helper()
	var text strings.Builder
	if err := result.Write(&text, run); err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(text.String()))
}

func write(t *testing.T, dir, name string, texts ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(texts, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestListHasTheNewestFirstAndIsSearched(t *testing.T) {
	dir := t.TempDir()
	old, young, study := sample(t), sample(t), sample(t)
	young.Header.StartedAt = young.Header.StartedAt.Add(time.Hour)
	young.Header.Machine = slices.Clone(young.Header.Machine)
	for i, f := range young.Header.Machine {
		if f.Name == "CPU model" {
			young.Header.Machine[i].Value = "Another CPU"
		}
	}
	study.Header.StartedAt = study.Header.StartedAt.Add(-time.Hour)
	study.Header.Study = "advice"
	write(t, dir, "b.jsonl", lines(t, old)...)
	write(t, dir, "a.jsonl", lines(t, young)...)
	write(t, dir, "of any name", lines(t, study)...)
	write(t, dir, "damaged.jsonl", "{}\n")
	write(t, dir, "foreign.txt", "nothing of ours\n")
	if err := os.Mkdir(filepath.Join(dir, "below.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, dir)
	list := s.wants("/", http.StatusOK, "4 of 4 files", "line 1: not a results file of holdfast", "complete: 2 rounds").body
	a, b, other := strings.Index(list, ">a.jsonl<"), strings.Index(list, ">b.jsonl<"), strings.Index(list, ">of any name<")
	if a < 0 || b < a || other < b {
		t.Errorf("a, b and the other stand at %d, %d, %d", a, b, other)
	}
	for _, absent := range []string{"foreign.txt", "below", `href="/report?file=damaged`} {
		if strings.Contains(list, absent) {
			t.Errorf("the list has %s", absent)
		}
	}
	found := func(query string, want ...string) {
		t.Helper()
		body := s.wants("/?"+query, http.StatusOK, fmt.Sprintf("%d of 4 files", len(want))).body
		for _, name := range want {
			if !strings.Contains(body, ">"+name+"<") {
				t.Errorf("%s does not find %s", query, name)
			}
		}
	}
	found("words=another+cpu", "a.jsonl")
	found("words=ANY", "of any name")
	found("words=nowhere")
	found("study=advice", "of any name")
	found("policy="+url.QueryEscape(old.Header.Cells[0].Policy.String()), "a.jsonl", "b.jsonl", "of any name")
	found("policy=sync")
	found("machine="+url.QueryEscape(machineText(young.Header)), "a.jsonl")
	found("study=advice&words=cpu", "of any name")
}

// TestListFollowsTheDirectory looks again at files that change, come and go.
func TestListFollowsTheDirectory(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, dir)
	s.wants("/", http.StatusOK, "There are no results here yet")
	all := lines(t, sample(t))
	write(t, dir, "a.jsonl", all[:3]...)
	s.wants("/", http.StatusOK, "watch it", "no end: the run was killed or is still going on")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "a.jsonl"), long, long); err != nil {
		t.Fatal(err)
	}
	if a := s.wants("/", http.StatusOK, "no end: "); strings.Contains(a.body, "watch it") {
		t.Error("what has not grown for an hour can be watched")
	}
	write(t, dir, "a.jsonl", all...)
	s.wants("/", http.StatusOK, "complete: 2 rounds")
	if err := os.Remove(filepath.Join(dir, "a.jsonl")); err != nil {
		t.Fatal(err)
	}
	s.wants("/", http.StatusOK, "There are no results here yet")
}

func TestReportIsThePageOfTheCommandReport(t *testing.T) {
	dir := t.TempDir()
	run := sample(t)
	write(t, dir, "a.jsonl", lines(t, run)...)
	var want strings.Builder
	if err := report.HTML(&want, nil, run, report.More{}); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, dir)
	got := s.wants("/report?file=a.jsonl", http.StatusOK)
	if got.body != want.String() {
		t.Error("it is another page")
	}
	if p := got.header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none';") || strings.Contains(p, "connect-src") {
		t.Errorf("the page may do %s", p)
	}
	s.wants("/report?file=b.jsonl", http.StatusNotFound, "there is no file &#34;b.jsonl&#34; in the directory")
	s.wants("/report", http.StatusNotFound)
	write(t, dir, "cut.jsonl", lines(t, run)[0])
	s.wants("/report?file=cut.jsonl", http.StatusUnprocessableEntity, "no round is whole")
}

func TestTickedRunsAreCompared(t *testing.T) {
	dir := t.TempDir()
	old, young := sample(t), sample(t)
	young.Header.StartedAt = young.Header.StartedAt.Add(time.Hour)
	other := sample(t)
	other.Header.StartedAt = other.Header.StartedAt.Add(2 * time.Hour)
	other.Header.Cells, other.Trials = slices.Clone(other.Header.Cells), slices.Clone(other.Trials)
	for i := range other.Header.Cells {
		other.Header.Cells[i].Name, other.Header.Cells[i].RecordBytes = "x"+other.Header.Cells[i].Name, 999
	}
	for i := range other.Trials {
		other.Trials[i].Cell = "x" + other.Trials[i].Cell
	}
	write(t, dir, "young.jsonl", lines(t, young)...)
	write(t, dir, "z-old.jsonl", lines(t, old)...)
	write(t, dir, "other.jsonl", lines(t, other)...)
	s := newSite(t, dir)
	page := s.wants("/compare?file=young.jsonl&file=z-old.jsonl&file=other.jsonl", http.StatusOK,
		"young.jsonl beside z-old.jsonl", "overall B takes", "other.jsonl beside z-old.jsonl", "the two have no cell in common").body
	if !strings.Contains(page, "A: z-old.jsonl, 2 rounds") {
		t.Errorf("A is not the older one:\n%s", page)
	}
	s.wants("/compare?file=young.jsonl", http.StatusBadRequest, "1 file ticked: a comparison takes 2 to 8")
	s.wants("/compare?file=young.jsonl&file=young.jsonl", http.StatusBadRequest, "1 file ticked")
	s.wants("/compare?file=young.jsonl&file=none.jsonl", http.StatusNotFound)
}

// TestHostsAreSetBesideEachOther: of the ticked hosts, or of all that a search finds, it is the page of holdfast fleet.
func TestHostsAreSetBesideEachOther(t *testing.T) {
	dir := t.TempDir()
	hosts := map[string]fleet.Host{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		run := sample(t)
		run.Header.Machine = append(slices.Clone(run.Header.Machine), machine.Fact{Name: machine.HostName, Value: "node-" + name})
		if name == "e" {
			run.Header.Study = "advice"
		}
		write(t, dir, name+".jsonl", lines(t, run)...)
		host, err := fleet.NewHost(name+".jsonl", run)
		if err != nil {
			t.Fatal(err)
		}
		hosts[name] = host
	}
	write(t, dir, "lost.jsonl", "{}\n")
	s := newSite(t, dir)
	check := func(query string, names string, silent ...fleet.Silent) {
		t.Helper()
		var of []fleet.Host
		for _, name := range strings.Fields(names) {
			of = append(of, hosts[name])
		}
		var want strings.Builder
		if err := show.HTML(&want, fleet.New(of, silent, nil, fleet.DefaultThreshold)); err != nil {
			t.Fatal(err)
		}
		if got := s.wants("/fleet"+query, http.StatusOK).body; got != want.String() {
			_, got, _ = strings.Cut(got, "<main>")
			t.Errorf("%s is not the page of the hosts %s:\n%.3000s", query, names, got)
		}
	}
	lost := fleet.Silent{Host: "lost", File: "lost.jsonl", Why: "line 1: not a results file of holdfast: the first line is not a header"}
	check("?file=a.jsonl&file=b.jsonl&file=a.jsonl", "a b")
	check("", "a b c d e", lost)
	check("?study=advice", "e")
	check("?words=node-c", "c")
	check("?file=lost.jsonl&words=node-c", "", lost)
	check("?file=../lost.jsonl", "", fleet.Silent{Host: "lost", File: "../lost.jsonl", Why: "file does not exist"})
	s.wants("/?words=node-c", http.StatusOK, `<button formaction="/fleet">`, `<input type="hidden" name="words" value="node-c">`, "<b>node-c</b>")
}

// TestForeignSitesGetNothing is about a browser that has a hostile page open: its requests come
// from this machine, with another Host (DNS rebinding), another Origin or another site.
func TestForeignSitesGetNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "secret.jsonl", lines(t, sample(t))...)
	s := newSite(t, dir)
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	host := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	origin := func(origins ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Origin"] = origins }
	}
	check := func(status int, change func(*http.Request)) {
		t.Helper()
		for _, path := range []string{"/", "/report?file=secret.jsonl", "/live?file=secret.jsonl", "/events?file=secret.jsonl", "/style.css", "/nowhere"} {
			a := s.ask(path, change)
			if status == http.StatusOK && a.status == http.StatusNotFound && path == "/nowhere" {
				continue
			}
			if a.status != status {
				t.Errorf("%s: status %d, want %d: %.200s", path, a.status, status, a.body)
			}
			if status != http.StatusOK && (strings.Contains(a.body, "AMD EPYC") || strings.Contains(a.body, "secret.jsonl")) {
				t.Errorf("%s answers with what is in the directory", path)
			}
			if status != http.StatusOK && a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s lets others read", path)
			}
		}
	}
	for _, own := range []string{s.address, "localhost:" + port, "LOCALHOST:" + port} {
		check(http.StatusOK, host(own))
	}
	for _, foreign := range []string{"evil.example", "evil.example:" + port, "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:" + port,
		"127.0.0.1.evil.example:" + port, "127.0.0.2:" + port, "0.0.0.0:" + port, "[::1]:" + port, "localhost", "\"\x1b[31m\""} {
		check(http.StatusMisdirectedRequest, host(foreign))
	}
	check(http.StatusOK, origin("http://"+s.address))
	for _, foreign := range [][]string{{"http://evil.example"}, {"null"}, {"https://" + s.address}, {"http://127.0.0.1:1"}, {""},
		{"http://" + s.address, "http://evil.example"}, {"http://localhost:" + port}} {
		check(http.StatusForbidden, origin(foreign...))
	}
	site := func(sites ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Sec-Fetch-Site"] = sites }
	}
	check(http.StatusOK, site("none"))
	check(http.StatusOK, site("same-origin"))
	for _, foreign := range [][]string{{"cross-site"}, {"same-site"}, {"none", "cross-site"}, {""}} {
		check(http.StatusForbidden, site(foreign...))
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "BREW"} {
		check(http.StatusMethodNotAllowed, func(r *http.Request) { r.Method = method; r.URL.Opaque = "" })
	}
}

// TestOnlyTheDirectoryIsRead asks for files outside, by name and by link.
func TestOnlyTheDirectoryIsRead(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "results")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	all := lines(t, sample(t))
	write(t, above, "secret.jsonl", all...)
	write(t, dir, "own.jsonl", all...)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sub"), "below.jsonl", all...)
	symlink := func(to, name string) { isolate.Symlink(t, to, filepath.Join(dir, name)) }
	symlink("../secret.jsonl", "out.jsonl")
	symlink(filepath.Join(above, "secret.jsonl"), "absolute.jsonl")
	symlink("../secret.jsonl", "of any name")
	symlink("nothing", "dangling.jsonl")
	symlink("turning.jsonl", "turning.jsonl")
	symlink("own.jsonl", "within.jsonl")
	symlink("..", "up")
	s := newSite(t, dir)
	list := s.wants("/", http.StatusOK, "own.jsonl", `href="/report?file=within.jsonl"`, "out.jsonl", "absolute.jsonl", "dangling.jsonl", "turning.jsonl").body
	if n := strings.Count(list, "is a link to a file outside of this directory, or to none"); n != 4 {
		t.Errorf("%d links lead out, want 4:\n%s", n, list)
	}
	if strings.Contains(list, "of any name") {
		t.Error("a link out is looked into")
	}
	s.wants("/report?file=within.jsonl", http.StatusOK)
	for _, name := range []string{"../secret.jsonl", "out.jsonl", "absolute.jsonl", "of any name", "up/secret.jsonl", "sub/below.jsonl", "sub/../own.jsonl",
		"./own.jsonl", "/own.jsonl", filepath.Join(above, "secret.jsonl"), "..", ".", "", "sub", "dangling.jsonl", "turning.jsonl", "own.jsonl\x00", "\xff.jsonl", `..\secret.jsonl`} {
		for _, page := range []string{"/report", "/live", "/events"} {
			if a := s.ask(link(page, name), nil); a.status == http.StatusOK || strings.Contains(a.body, "AMD EPYC") {
				t.Errorf("%s shows %q: status %d", page, name, a.status)
			}
		}
	}
	for _, path := range []string{"/../secret.jsonl", "/..%2fsecret.jsonl", "/secret.jsonl", "/own.jsonl", "/pages.html", "//evil.example/%2e%2e"} {
		if a := s.ask(path, nil); a.status == http.StatusOK && a.body != s.ask("/", nil).body {
			t.Errorf("%s: status %d\n%.300s", path, a.status, a.body)
		}
	}
}

// events are the lines of a stream, until it ends.
func (s *site) events(name string) *bufio.Scanner {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.address+link("/events", name), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { got.Body.Close() })
	if kind := got.Header.Get("Content-Type"); got.StatusCode != http.StatusOK || kind != "text/event-stream" {
		s.t.Fatalf("status %d, %s", got.StatusCode, kind)
	}
	return bufio.NewScanner(got.Body)
}

// until reads a stream up to a line, and returns what came before.
func until(t *testing.T, events *bufio.Scanner, line string) string {
	t.Helper()
	var before strings.Builder
	for events.Scan() {
		if events.Text() == line {
			return before.String()
		}
		fmt.Fprintln(&before, events.Text())
	}
	t.Fatalf("the stream ends (%v) before %q:\n%s", events.Err(), line, &before)
	return ""
}

func TestAGrowingRunIsSentAsItGrows(t *testing.T) {
	dir := t.TempDir()
	run := sample(t)
	all := lines(t, run)
	first := 1 + len(run.Trials)*2/3 // the header, the warm-up and one round
	write(t, dir, "a.jsonl", all[0])
	s := newSite(t, dir)
	s.wants("/live?file=a.jsonl", http.StatusOK, `data-events="/events?file=a.jsonl"`, "the first round is not complete yet", "0 of 2 rounds, 0 trials")
	events := s.events("a.jsonl")
	until(t, events, "data: 0 of 2 rounds, 0 trials")
	write(t, dir, "a.jsonl", append(slices.Clone(all[:first]), all[first][:20])...)
	until(t, events, "event: table")
	if table := until(t, events, fmt.Sprintf("data: 1 of 2 rounds, %d trials", first-1)); !strings.Contains(table, run.Header.Cells[0].Policy.String()) {
		t.Errorf("the table is\n%s", table)
	}
	write(t, dir, "a.jsonl", all...)
	until(t, events, "event: end")
	until(t, events, fmt.Sprintf("data: 2 of 2 rounds, %d trials: complete", len(run.Trials)))
	for events.Scan() {
		if events.Text() != "" {
			t.Errorf("after the end comes %q", events.Text())
		}
	}
	write(t, dir, "b.jsonl", all[0])
	events = s.events("b.jsonl")
	until(t, events, "data: 0 of 2 rounds, 0 trials")
	if err := os.Remove(filepath.Join(dir, "b.jsonl")); err != nil {
		t.Fatal(err)
	}
	until(t, events, "event: gone")
}

// TestOpenStreamsEndWithTheServer ends it while all streams are open that it allows: the site
// checks that it ends without an error, and that nothing is left.
func TestOpenStreamsEndWithTheServer(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.jsonl", lines(t, sample(t))[0])
	s := newSite(t, dir)
	var streams []*bufio.Scanner
	for range mostStreams {
		streams = append(streams, s.events("a.jsonl"))
	}
	s.wants("/events?file=a.jsonl", http.StatusServiceUnavailable, "32 runs are being watched already")
	s.end()
	for _, stream := range streams {
		for stream.Scan() { // until it ends
		}
	}
	if c, err := net.Dial("tcp", s.address); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

// TestHostileResultsAreInert puts into a file what a page or a terminal would obey.
func TestHostileResultsAreInert(t *testing.T) {
	dir := t.TempDir()
	const hostile = "</title></script><script>alert(1)</script>\x1b[31m\u202e\r\ndata: x\"'><img src=x onerror=alert(1)>"
	run := sample(t)
	run.Header.Study, run.Header.Question = hostile, hostile
	run.Header.Machine = slices.Clone(run.Header.Machine)
	for i := range run.Header.Machine {
		run.Header.Machine[i].Value = hostile
	}
	run.End.State, run.End.Reason = result.Interrupted, hostile
	name := `a"><script>alert(2)<` + "\x1b[31m" + `.jsonl`
	if runtime.GOOS == "windows" {
		name = "a'&amp;.jsonl"
	}
	write(t, dir, name, lines(t, run)...)
	write(t, dir, "b.jsonl", lines(t, sample(t))...)
	s := newSite(t, dir)
	markup := []string{"<script>alert", "<img src=x"}
	check := func(path string, or ...string) {
		t.Helper()
		a := s.wants(path, http.StatusOK)
		for _, live := range append([]string{"\x1b", "\u202e", "\r"}, or...) {
			if strings.Contains(a.body, live) {
				t.Errorf("%s has %q", path, live)
			}
		}
	}
	check("/", markup...)
	check("/?words="+url.QueryEscape(hostile), markup...)
	check("/?machine="+url.QueryEscape(hostile), markup...)
	check(link("/live", name), markup...)
	check(link("/events", name), "\ndata: x") // which live.js puts in as text
	check("/compare?file=b.jsonl&"+url.Values{"file": {name}}.Encode(), markup...)
	check("/fleet", markup...)
	if a := s.ask(link("/report", "<script>alert(1)</script>\x1b[31m"), nil); strings.Contains(a.body, "<script>") || strings.Contains(a.body, "\x1b") {
		t.Errorf("a name is said as it is:\n%s", a.body)
	}
	if a := s.ask("/%3Cscript%3Ealert(1)%3C/script%3E", nil); a.status != http.StatusNotFound || strings.Contains(a.body, "<script>") {
		t.Errorf("a path is said as it is: %d\n%s", a.status, a.body)
	}
}

func TestPagesMayDoLittle(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.jsonl", lines(t, sample(t))...)
	s := newSite(t, dir)
	for _, path := range []string{"/", "/report?file=a.jsonl", "/live?file=a.jsonl", "/nowhere", "/compare", "/fleet", "/live.js", "/style.css"} {
		h := s.ask(path, nil).header
		if p := h.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") || strings.Contains(p, "*") || strings.Contains(p, "http") || !strings.Contains(p, "frame-ancestors 'none'") {
			t.Errorf("%s may load %q", path, p)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, h)
		}
		if a := s.ask(path, func(r *http.Request) { r.Method = http.MethodHead }); a.body != "" {
			t.Errorf("HEAD %s has a body", path)
		}
	}
	if a := s.ask("/events?file=a.jsonl", func(r *http.Request) { r.Method = http.MethodHead }); a.status != http.StatusOK || a.body != "" {
		t.Errorf("HEAD of a stream: %d %q", a.status, a.body)
	}
}

func TestAddressesAreParsed(t *testing.T) {
	check := func(text, want, wrong string) {
		t.Helper()
		got, err := parseAddress(text)
		if wrong == "" && (err != nil || got != want) || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%q: %q, %v; want %q %s", text, got, err, want, wrong)
		}
	}
	check("127.0.0.1:8484", "127.0.0.1:8484", "")
	check("localhost:"+"0", "localhost:"+"0", "")
	check("[::1]:8484", "[::1]:8484", "")
	check("0.0.0.0:65535", "0.0.0.0:65535", "")
	check(":8484", "", "names no host; use 127.0.0.1:8484 for this machine alone, or 0.0.0.0:8484")
	check("8484", "", `"8484" is not an address such as`)
	check("127.0.0.1:65536", "", `"65536" is not a port`)
	check("127.0.0.1:http", "", `"http" is not a port`)
	check("127.0.0.1:-1", "", "not a port")
	check("", "", "not an address")
}

// TestLargeFilesAreNotRead: one byte more than the bound, of which none is read.
func TestLargeFilesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "large.jsonl", lines(t, sample(t))...)
	s := newSite(t, dir)
	s.wants("/report?file=large.jsonl", http.StatusOK)
	if err := os.Truncate(filepath.Join(dir, "large.jsonl"), mostResults+1); err != nil {
		t.Fatal(err)
	}
	s.wants("/report?file=large.jsonl", http.StatusUnprocessableEntity, "512")
}
